/** Marks in a form that goes to another thread, in order of the positions of what they mark. */
export interface MarkColumns {
  /** Of the marked records, and of the marks themselves. */
  readonly positions: Float64Array;
  readonly markedAt: Float64Array;
  /** On-disk ids, 16 bytes each. */
  readonly ids: Uint8Array;
  /** Metadata that go, too: of which of the events above, and where the mark that names them lies. */
  readonly keys: readonly MarkedName[];
}

export type MarkedName = readonly [index: number, name: string, markedAt: number];

/** The names of each of the events that have some. */
export function namesIn({ keys }: Pick<MarkColumns, 'keys'>): ReadonlyMap<number, readonly string[]> {
  const names = new Map<number, string[]>();
  for (const [index, name] of keys) {
    const known = names.get(index);
    if (known === undefined) names.set(index, [name]);
    else known.push(name);
  }
  return names;
}

export const NO_MARKS: MarkColumns = {
  positions: new Float64Array(0),
  markedAt: new Float64Array(0),
  ids: new Uint8Array(0),
  keys: [],
};

export type MarkRange = readonly [from: number, to: number, before: number];

/** For `columns`: of all records, wherever they lie. */
export const ALL_MARKS: MarkRange = [0, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER];
