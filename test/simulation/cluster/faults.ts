/** Rules that can be left out, to see that the simulation notices. */
export const FAULTS = ['no-fence', 'epoch-expects-nothing', 'existence-filter-not-fed', 'chunk-ended-by-intention', 'no-comparison-at-opening', 'whole-file-over-half-chunk', 'read-before-applied'] as const;
export type Fault = typeof FAULTS[number];
