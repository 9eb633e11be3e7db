/** A day of minutes. */
export const STEPS_MAX = 1_440;
/** What the node did in a day is kept in so much memory at most; series beyond have no history. */
const HISTORY_BYTES_MAX = 512 * 1_024;
const LINE_BYTES = STEPS_MAX * Float32Array.BYTES_PER_ELEMENT;

/** Where all lines, and the times of their steps, have their memory from: never more than the limit. */
export class LineRoom {
  #usedBytes = 0;

  /** Unix milliseconds, by slot. */
  times(): Float64Array {
    const times = new Float64Array(STEPS_MAX);
    this.#usedBytes += times.byteLength;
    return times;
  }

  /** Null where there is no room for all of them. */
  lines(count: number): Float32Array[] | null {
    if (this.#usedBytes + count * LINE_BYTES > HISTORY_BYTES_MAX) return null;
    this.#usedBytes += count * LINE_BYTES;
    return Array.from({ length: count }, () => new Float32Array(STEPS_MAX));
  }

  get usedBytes(): number {
    return this.#usedBytes;
  }
}

/** What was measured in a step, by series: the values of its lines. Null where nothing could be measured. */
export type Measured = ReadonlyMap<string, readonly (number | null)[]> | null;

export interface LineSet {
  /** The lines of each series. */
  readonly names: readonly string[];
  /** Series that are kept at most. */
  readonly seriesMax: number;
  /** By how many of its lines, from the first on, one sees how busy a series is. */
  readonly busyBy: number;
}

/**
 * The lines of series of one kind, such as connectors. Where there are more series than are kept, those stay that were
 * the busiest in a minute of the day; series that are there no more are forgotten, so that one that is made anew under
 * the name of another begins without its past.
 */
export class DayLines {
  readonly #room: LineRoom;
  readonly #set: LineSet;
  /** NaN for what is not known. */
  readonly #kept = new Map<string, readonly Float32Array[]>();
  /** Lines of series that were forgotten. */
  readonly #spare: (readonly Float32Array[])[] = [];

  constructor(room: LineRoom, set: LineSet) {
    this.#room = room;
    this.#set = set;
  }

  keys(): Iterable<string> {
    return this.#kept.keys();
  }

  /** In the order of their names; null for a series that is not kept. */
  of(key: string): readonly Float32Array[] | null {
    return this.#kept.get(key) ?? null;
  }

  /** Takes a step; what only grows and yet fell began anew, and is not known. */
  put(slot: number, measured: Measured): void {
    for (const [key, lines] of this.#kept) {
      for (const line of lines) line[slot] = NaN;
      if (measured === null || measured.has(key)) continue;
      this.#kept.delete(key);
      this.#spare.push(lines);
    }
    if (measured === null) return;
    const more: string[] = [];
    for (const [key, values] of measured) {
      const lines = this.#kept.get(key);
      if (lines === undefined) more.push(key);
      else write(lines, slot, values);
    }
    if (more.length === 0) return;
    const busy = (key: string) => peakOf(measured.get(key)!.slice(0, this.#set.busyBy));
    more.sort((one, other) => busy(other) - busy(one));
    for (const key of more) {
      const lines = this.#free() ?? this.#ofQuieter(busy(key));
      if (lines === null) return;
      for (const line of lines) line.fill(NaN);
      write(lines, slot, measured.get(key)!);
      this.#kept.set(key, lines);
    }
  }

  #free(): readonly Float32Array[] | null {
    const spare = this.#spare.pop();
    if (spare !== undefined) return spare;
    return this.#kept.size < this.#set.seriesMax ? this.#room.lines(this.#set.names.length) : null;
  }

  /** The lines of the quietest series, where that was never so busy. */
  #ofQuieter(busy: number): readonly Float32Array[] | null {
    let quietest: string | null = null;
    let least = busy;
    for (const [key, lines] of this.#kept) {
      const peak = Math.max(...lines.slice(0, this.#set.busyBy).map(peakOf));
      if (peak < least) [quietest, least] = [key, peak];
    }
    if (quietest === null) return null;
    const lines = this.#kept.get(quietest)!;
    this.#kept.delete(quietest);
    return lines;
  }
}

function write(lines: readonly Float32Array[], slot: number, values: readonly (number | null)[]): void {
  for (const [i, line] of lines.entries()) {
    const value = values[i] ?? null;
    line[slot] = value === null || value < 0 ? NaN : value;
  }
}

/** The largest value that is known, or 0. */
function peakOf(values: Iterable<number | null>): number {
  let peak = 0;
  for (const value of values) if (value !== null && value > peak) peak = value;
  return peak;
}
