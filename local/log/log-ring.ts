import type { LogLineView, LogView } from '../../handlers/documents/node.ts';
import type { LogQuery } from '../../handlers/http/node-control.ts';
import type { LineLevel, LogLevel } from '../../infra/runtime/log-line.ts';

/** Characters of lines that are kept, about as many bytes. The newest line is always kept. */
export const RING_LENGTH_MAX = 1_048_576;
/** From so many lines that went on they are cut off together. */
const CUT_LINES = 1_024;

const RANKS: Readonly<Record<LineLevel, number>> = { debug: 0, info: 1, warn: 2, error: 3 };
/** What the format of a line has beside the fields. */
const OWN: ReadonlySet<string> = new Set(['@t', '@mt', '@l', '@x', 'SourceContext', 'ProcessId']);

interface Kept {
  readonly atMs: number;
  readonly level: LineLevel;
  /** As it stands in log files. */
  readonly text: string;
}

/**
 * The last lines of the log in memory, for users who read them over HTTP. Keeping one costs nothing beyond its text,
 * which the log makes anyway.
 */
export class LogRing {
  #lines: Kept[] = [];
  /** Of `#lines`, those that went. */
  #gone = 0;
  #length = 0;
  /** Sequence number of the last line; the first one that was ever logged has 1. */
  #last = 0;

  add(line: Kept): void {
    this.#lines.push(line);
    this.#last++;
    this.#length += line.text.length;
    while (this.#length > RING_LENGTH_MAX && this.#count > 1) this.#length -= this.#lines[this.#gone++]!.text.length;
    if (this.#gone < CUT_LINES) return;
    this.#lines = this.#lines.slice(this.#gone);
    this.#gone = 0;
  }

  get #count(): number {
    return this.#lines.length - this.#gone;
  }

  /** With `since` the lines behind that one, oldest first; without it the newest. */
  view(level: LogLevel, { count, level: wanted, since }: LogQuery): LogView {
    const first = this.#last - this.#count + 1;
    const lines: LogLineView[] = [];
    const take = (sequence: number): void => {
      const line = this.#lines[this.#gone + sequence - first]!;
      if (RANKS[line.level] >= RANKS[wanted]) lines.push(viewOf(sequence, line));
    };
    if (since === null) {
      for (let sequence = this.#last; sequence >= first && lines.length < count; sequence--) take(sequence);
      lines.reverse();
    } else
      for (let sequence = Math.max(first, since + 1); sequence <= this.#last && lines.length < count; sequence++)
        take(sequence);
    return { level, first, last: this.#last, missed: since === null ? 0 : Math.max(0, first - since - 1), lines };
  }
}

/** The texts are taken apart only when they are asked for. */
function viewOf(sequence: number, { atMs, level, text }: Kept): LogLineView {
  const parsed = JSON.parse(text) as Record<string, unknown>;
  const fields = Object.fromEntries(
    Object.entries(parsed)
      .filter(([name]) => !OWN.has(name))
      .map(([name, value]) => [name.startsWith('@@') ? name.slice(1) : name, value]),
  );
  const exception = parsed['@x'];
  return {
    sequence,
    time: new Date(atMs).toISOString(),
    level,
    message: String(parsed['@mt']),
    fields,
    ...(typeof exception === 'string' && { exception }),
  };
}
