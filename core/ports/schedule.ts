/** When a schedule comes round. A pure function of its arguments. */
export interface Schedule {
  /**
   * The first whole minute strictly after `afterMs` (milliseconds since 1970) that the expression names in the zone;
   * null when there is none. `expression` is what `parseSchedule` (core/auto-scavenge/format/schedule-text.ts) made of
   * a text; `zone` is an IANA name.
   */
  next(expression: string, afterMs: number, zone: string): number | null;
}
