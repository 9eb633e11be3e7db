/** What writers of many processes did, and whether one order of each stream explains all of it. */

export type Outcome =
  | { readonly kind: 'appended'; readonly first: number; readonly last: number; readonly isRepeat: boolean }
  | { readonly kind: 'conflict'; readonly actual: number }
  /** Ids of the stream's events from its beginning on, up to the last one. */
  | { readonly kind: 'read'; readonly ids: readonly string[] }
  /** Only the number of the stream's last event, -1 for none, as it was at most `ageMs` before the operation. */
  | { readonly kind: 'last'; readonly number: number; readonly ageMs: number }
  | { readonly kind: 'refused'; readonly code: string }
  | { readonly kind: 'unknown' };

/** Times are of one clock that all processes of a machine share, in milliseconds. */
export interface Operation {
  readonly writer: number;
  readonly stream: string;
  readonly ids: readonly string[];
  /** `read`, or the expected version of an append. */
  readonly asked: 'read' | number;
  readonly startMs: number;
  /** Infinity for a process that was killed before it had an answer. */
  readonly endMs: number;
  readonly outcome: Outcome;
}

const ANY = -2;

/**
 * Judges the history of one stream against its events as they are in the end. Since the log has an order of its own,
 * that is checked which any order in which operations could have happened one by one must have: every operation fits a
 * moment between its beginning and its end. Returns what does not.
 */
export function judgeStream(stream: string, final: readonly string[], operations: readonly Operation[]): string[] {
  const problems: string[] = [];
  const numberOf = new Map(final.map((id, number) => [id, number]));
  if (numberOf.size !== final.length) problems.push(`${stream}: an event is there twice`);
  /** When event n can have come at the earliest, and was there at the latest. */
  const earliestMs = new Float64Array(final.length).fill(Number.NEGATIVE_INFINITY);
  const latestMs = new Float64Array(final.length).fill(Number.POSITIVE_INFINITY);
  const seen = (number: number, atMs: number) => {
    latestMs[number] = Math.min(latestMs[number]!, atMs);
  };
  for (const operation of operations) {
    const { asked, ids, startMs, endMs, outcome } = operation;
    if (asked !== 'read')
      for (const id of ids)
        if (numberOf.has(id)) earliestMs[numberOf.get(id)!] = Math.max(earliestMs[numberOf.get(id)!]!, startMs);
    if (outcome.kind === 'appended') {
      ids.forEach((id, i) => {
        if (numberOf.get(id) !== outcome.first + i)
          problems.push(
            `${stream}: ${id} was acknowledged as event ${outcome.first + i} and is ${numberOf.get(id) ?? 'not there'}`,
          );
        else seen(outcome.first + i, endMs);
      });
      if (asked !== 'read' && asked !== ANY && outcome.first !== asked + 1)
        problems.push(`${stream}: expected version ${asked} gave event ${outcome.first}`);
    } else if (outcome.kind === 'read') {
      outcome.ids.forEach((id, number) => {
        if (final[number] !== id)
          problems.push(`${stream}: a reader saw ${id} as event ${number}, which is ${final[number] ?? 'not there'}`);
        else seen(number, endMs);
      });
    } else if (outcome.kind === 'conflict' || outcome.kind === 'refused') {
      for (const id of ids)
        if (numberOf.has(id))
          problems.push(`${stream}: ${id} was refused (${outcome.kind}) and is event ${numberOf.get(id)}`);
    }
  }
  // An event is there from when any later one is.
  for (let n = final.length - 2; n >= 0; n--) latestMs[n] = Math.min(latestMs[n]!, latestMs[n + 1]!);
  for (let n = 1; n < final.length; n++) earliestMs[n] = Math.max(earliestMs[n]!, earliestMs[n - 1]!);
  for (let n = 0; n < final.length; n++)
    if (earliestMs[n]! > latestMs[n]!)
      problems.push(
        `${stream}: event ${n} was there at ${latestMs[n]} ms, before it or one in front of it was asked for at ${earliestMs[n]} ms`,
      );
  for (const operation of operations) {
    const problem = judgeMoment(operation, earliestMs, latestMs);
    if (problem !== null) problems.push(`${stream}: writer ${operation.writer} ${problem}`);
  }
  return problems;
}

/** Whether the stream can have ended where the operation says, at a moment between its beginning and its end. */
function judgeMoment(
  { startMs, endMs, outcome, asked }: Operation,
  earliestMs: Float64Array,
  latestMs: Float64Array,
): string | null {
  if (outcome.kind !== 'read' && outcome.kind !== 'last' && outcome.kind !== 'conflict') return null;
  const last =
    outcome.kind === 'read' ? outcome.ids.length - 1 : outcome.kind === 'last' ? outcome.number : outcome.actual;
  if (outcome.kind === 'conflict' && outcome.actual === asked)
    return `had a conflict at the version ${asked} that it expected`;
  if (last >= earliestMs.length) return `saw event ${last}, which is not there`;
  if (last >= 0 && earliestMs[last]! > endMs)
    return `saw event ${last} at ${endMs} ms, before it was asked for at ${earliestMs[last]} ms`;
  const ageMs = outcome.kind === 'last' ? outcome.ageMs : 0;
  if (last + 1 < latestMs.length && latestMs[last + 1]! < startMs - ageMs)
    return `saw ${last} as the last event at ${startMs} ms, when event ${last + 1} had been there since ${latestMs[last + 1]} ms`;
  return null;
}
