import { SkuaError } from '../base/errors.ts';
import { type FileFormat, note, type Part } from '../ports/file-format.ts';
import { decodeText, encodeText } from '../base/text.ts';
import { USER_STREAM_PREFIX } from './format/user.ts';

/**
 * Files of logins and of the audit, for programs that look into them; and what of events such a program does not show.
 */

const SESSION_KEY: FileFormat = {
  kind: 'session-key',
  title: 'key of the sessions of the page',
  names: [/(?<=^|\/)session\.key$/],
  async *parts({ file }) {
    yield note(`A secret of ${file.size} bytes: it is not shown. Anyone who has it can create sessions of any user.`);
  },
};

/** Bytes of an entry that are read; the audit writes no longer ones. */
const ENTRY_BYTES_MAX = 65_536;
const READ_BYTES = 1_048_576;
const LINE_END = 10;

const AUDIT: FileFormat = {
  kind: 'audit-log',
  title: 'audit',
  names: [],
  begins: (head) => /^\{"time":"[^"]{1,40}","action":"/.test(decodeText(head)),
  async *parts({ file }) {
    for (let at = 0, rest: Uint8Array = new Uint8Array(0); at < file.size;) {
      const piece = await file.read(at, Math.min(READ_BYTES, file.size - at));
      if (piece.length === 0) return;
      const bytes = new Uint8Array(rest.length + piece.length);
      bytes.set(rest);
      bytes.set(piece, rest.length);
      const start = at - rest.length;
      at += piece.length;
      const end = at < file.size ? bytes.lastIndexOf(LINE_END) + 1 : bytes.length;
      if (end === 0 && bytes.length > ENTRY_BYTES_MAX)
        throw new SkuaError(
          'bad_json',
          `${file.path} has a line at offset ${start} that is not an audit entry: it is too long.`,
          { offset: start },
        );
      for (let from = 0; from < end;) {
        const found = bytes.indexOf(LINE_END, from);
        const to = found < 0 || found > end ? end : found;
        yield entryPart(file.path, bytes.subarray(from, to), start + from);
        from = to + 1;
      }
      rest = bytes.slice(end);
    }
  },
};

interface AuditFields {
  readonly time?: unknown;
  readonly action?: unknown;
  readonly outcome?: unknown;
  readonly user?: unknown;
  readonly address?: unknown;
  readonly target?: unknown;
}

function entryPart(path: string, line: Uint8Array, offset: number): Part {
  let entry: AuditFields | null = null;
  try {
    entry = JSON.parse(decodeText(line)) as AuditFields | null;
  } catch {
    // Reported below.
  }
  if (entry === null || typeof entry !== 'object')
    return {
      kind: 'damage',
      offset,
      error: new SkuaError('bad_json', `${path} has a line at offset ${offset} that is not an audit entry.`, {
        offset,
      }),
    };
  const { time, action, outcome, user, address, target, ...more } = entry;
  const texts = (members: object) =>
    Object.fromEntries(
      Object.entries(members).map(([name, value]) => [
        name,
        value === null || value === undefined ? null : typeof value === 'string' ? value : JSON.stringify(value),
      ]),
    );
  return {
    kind: 'record',
    group: 'entries',
    offset,
    describe: () => ({ fields: texts({ time, action, outcome, user, address, target }), more: texts(more) }),
  };
}

export const SECURITY_FORMATS: readonly FileFormat[] = [SESSION_KEY, AUDIT];

/** Streams of the page: ids of sessions, and in older directories keys. */
const UI_PREFIX = '$ui-';
/** Members of the record of a user that every reader of the file may see. */
const USER_MEMBERS: ReadonlySet<string> = new Set(['loginName', 'fullName', 'disabled', 'groups']);
/** A sealed secret, as settings of connectors have them (sealed-secrets/sealed-secrets.ts). */
const SEALED_SECRET = /skua-sealed:1:[0-9a-f]{1,64}:[A-Za-z0-9+/=]*/g;
const HIDDEN = '(not shown)';

/**
 * The data of an event of a stream without what is secret: hashes of passwords, sessions, sealed secrets. Null where
 * nothing of them may be shown.
 */
export function withoutSecrets(stream: string, data: Uint8Array): Uint8Array | null {
  if (data.length === 0) return data;
  if (stream.startsWith(UI_PREFIX)) return null;
  if (stream.startsWith(USER_STREAM_PREFIX)) return userWithoutSecrets(data);
  if (!stream.startsWith('$')) return data;
  const text = decodeText(data);
  return text.includes('skua-sealed:') ? encodeText(text.replace(SEALED_SECRET, HIDDEN)) : data;
}

function userWithoutSecrets(data: Uint8Array): Uint8Array | null {
  try {
    const user: unknown = JSON.parse(decodeText(data));
    if (typeof user !== 'object' || user === null || Array.isArray(user)) return null;
    return encodeText(
      JSON.stringify(
        Object.fromEntries(
          Object.entries(user).map(([name, value]) => [name, USER_MEMBERS.has(name) ? value : HIDDEN]),
        ),
      ),
    );
  } catch {
    return null;
  }
}
