/**
 * What a figure is: something of ours measured beside its limit, a hand-written loop that does the least that must be
 * done, in alternating windows of one run. Only their ratio is judged; absolute numbers belong to the machine.
 */

export interface Settings {
  /** A smoke run of a few seconds: tiny amounts, one short window. Its numbers say nothing about speed. */
  readonly isSmoke: boolean;
  /** Part of the usual amount of data that a figure makes for itself: 1, or less in a quick run. */
  readonly dataShare: number;
  /** Folder for the data of this run, removed afterwards. */
  readonly folder: string;
  /** Measured windows of each side. */
  readonly windows: number;
  readonly windowMs: number;
  /** Events in the log that is read, rebuilt and started with. */
  readonly logEvents: number;
  /** Streams of one event each of the memory figure, appended twice. */
  readonly memoryStreams: number;
  /** Bytes of a chunk in the scavenging figures. */
  readonly scavengeChunkBytes: number;
  /** Streams with metadata in the memory figure of scavenging. */
  readonly scavengeStreams: number;
  /** Events of the log that a node is started with, or that are appended to one, in the figures of scale. */
  readonly scaleEvents: number;
  /** Events of the logs whose costs are compared, ascending. */
  readonly growthEvents: readonly number[];
  /** Of a figure with many cases only those are measured whose names contain this. */
  readonly only: string;
  /** Prints a line of progress. */
  say(line: string): void;
}

export interface Figure {
  readonly name: string;
  /** It takes minutes whatever the machine, by its size or by all that it starts: quick runs leave it out. */
  readonly isLong?: boolean;
  /** How it is measured, in sentences for the report. */
  readonly how: string;
  run(settings: Settings): Promise<Row[]>;
}

/** Median and range of one side's windows. */
export interface Side {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

export interface Row {
  readonly title: string;
  readonly unit: string;
  readonly limit: Side;
  readonly ours: Side;
  /** Every window of ours, in the order of measuring. */
  readonly windows: readonly number[];
  /** Ours divided by the limit, of the medians. */
  readonly ratio: number;
  /** Smallest and largest ratio of a window of ours and the limit's window before it. */
  readonly ratioMin: number;
  readonly ratioMax: number;
  readonly target: Target | null;
  /** Other numbers seen in the same windows. */
  readonly notes: readonly string[];
}

export interface Target {
  readonly kind: 'at least' | 'below' | 'at most';
  readonly value: number;
}

export function meetsTarget(row: Row): boolean | null {
  if (row.target === null) return null;
  if (row.target.kind === 'at most') return row.ratio <= row.target.value;
  return row.target.kind === 'at least' ? row.ratio >= row.target.value : row.ratio < row.target.value;
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

export function side(values: readonly number[]): Side {
  return { median: median(values), min: Math.min(...values), max: Math.max(...values) };
}

/** Measures limit, ours, limit, ours, ... so that what disturbs the machine disturbs both. */
export async function alternate(
  windows: number,
  limit: () => number | Promise<number>,
  ours: () => number | Promise<number>,
): Promise<{ limit: number[]; ours: number[] }> {
  const measured = { limit: [] as number[], ours: [] as number[] };
  for (let i = 0; i < windows; i++) {
    measured.limit.push(await limit());
    measured.ours.push(await ours());
  }
  return measured;
}

export function row(
  title: string,
  unit: string,
  measured: { limit: number[]; ours: number[] },
  target: Target | null,
  notes: readonly string[] = [],
): Row {
  const ratios = measured.ours.map((value, i) => value / (measured.limit[i] ?? measured.limit[0]!));
  const limit = side(measured.limit);
  const ours = side(measured.ours);
  return {
    title,
    unit,
    limit,
    ours,
    windows: measured.ours,
    ratio: ours.median / limit.median,
    ratioMin: Math.min(...ratios),
    ratioMax: Math.max(...ratios),
    target,
    notes,
  };
}
