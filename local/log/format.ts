import { SkuaError } from '../../core/base/errors.ts';
import { type FileFormat, type Part } from '../../core/ports/file-format.ts';
import { decodeText } from '../../core/base/text.ts';

/** Describes the log of a node in files for `skua inspect`: a line of JSON an event. */

/** Bytes of the longest line; jsonLine makes no longer ones. */
const LINE_BYTES_MAX = 262_144;
const LINE_END = 10;

const NODE_LOG: FileFormat = {
  kind: 'node-log',
  title: 'log of a node',
  names: [],
  begins: (head) => /^\{"@t":"[^"]{1,40}","@mt":"/.test(decodeText(head)),
  async *parts({ file }) {
    for (let at = 0; at < file.size;) {
      const bytes = (await file.read(at, Math.min(LINE_BYTES_MAX, file.size - at))).slice();
      const found = bytes.indexOf(LINE_END);
      const length = found < 0 ? bytes.length : found;
      if (length === 0 && found < 0) return;
      yield linePart(file.path, bytes.subarray(0, length), at);
      at += length + 1;
    }
  },
};

interface Line {
  readonly '@t'?: unknown;
  readonly '@l'?: unknown;
  readonly '@mt'?: unknown;
  readonly '@x'?: unknown;
  readonly SourceContext?: unknown;
  readonly ProcessId?: unknown;
}

function linePart(path: string, bytes: Uint8Array, offset: number): Part {
  let line: Line | null = null;
  try {
    line = JSON.parse(decodeText(bytes)) as Line | null;
  } catch {
    // Told below.
  }
  if (line === null || typeof line !== 'object')
    return {
      kind: 'damage',
      offset,
      error: new SkuaError('bad_json', `${path} has a line at offset ${offset} that is not a log line.`, { offset }),
    };
  const {
    '@t': time,
    '@l': level,
    '@mt': message,
    '@x': exception,
    SourceContext: _,
    ProcessId: processId,
    ...rest
  } = line;
  const text = (value: unknown) =>
    value === undefined || value === null ? null : typeof value === 'string' ? value : JSON.stringify(value);
  return {
    kind: 'record',
    group: 'lines',
    offset,
    describe: () => ({
      fields: {
        time: text(time),
        level: text(level),
        message: text(message),
        fields: Object.keys(rest).length === 0 ? null : JSON.stringify(rest),
      },
      more: { processId: text(processId), exception: text(exception) },
    }),
  };
}

export const NODE_LOG_FORMATS: readonly FileFormat[] = [NODE_LOG];
