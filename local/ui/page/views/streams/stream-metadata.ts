import { lines } from '../../api/response-lines.ts';
import { send } from '../../api/page-client.ts';
import { ApiError } from '../../api/problem-text.ts';
import { ExactNumber, formatJson, parseJson } from '../../lib/json.ts';
import type { Json } from '../../lib/json.ts';
import { newUuid } from '../../lib/uuid.ts';
import { addressOf } from './name-search.ts';
import type { LineDocument } from '../../../../../handlers/documents/streams.ts';

/** What limits a stream, and which users may do what with it: the last event of its metadata stream. */

export type Right = 'read' | 'write' | 'delete' | 'metadataRead' | 'metadataWrite';

/** The rights as they stand in access lists, and in words. */
export const RIGHTS: Readonly<Record<Right, { readonly key: string; readonly label: string; readonly verb: string }>> =
  {
    read: { key: '$r', label: 'Read', verb: 'read' },
    write: { key: '$w', label: 'Append', verb: 'append to' },
    delete: { key: '$d', label: 'Delete', verb: 'delete' },
    metadataRead: { key: '$mr', label: 'Read metadata', verb: 'read the metadata of' },
    metadataWrite: { key: '$mw', label: 'Change metadata', verb: 'change the metadata of' },
  };
export const RIGHT_NAMES = Object.keys(RIGHTS) as readonly Right[];

/** The names that are let in by each right; absent where the default counts. */
export type AccessList = Readonly<Partial<Record<Right, readonly string[]>>>;

export interface StreamMetadata {
  /** Number of the event in the metadata stream; -1 where there is none. */
  readonly version: number;
  readonly writtenAt: string | null;
  /** As it was written. */
  readonly text: string;
  readonly maxCount: number | null;
  /** In seconds. */
  readonly maxAge: number | null;
  readonly truncateBefore: number | null;
  /** Everything up to now is cut off: the mark of a soft deletion. */
  readonly isDeleted: boolean;
  /** In seconds. */
  readonly cacheControl: number | null;
  readonly acl: AccessList;
  /** What has no meaning for the node. */
  readonly others: Readonly<Record<string, Json>>;
  /** The text is no JSON object, or a known key has a value that can't be understood. */
  readonly isOdd: boolean;
}

/** What stands for “everything” in `$tb`: the greatest number of 64 bits. */
const EVERYTHING = '9223372036854775807';
const KNOWN: ReadonlySet<string> = new Set(['$maxCount', '$maxAge', '$tb', '$cacheControl', '$acl']);

export const NO_METADATA = parseMetadata('{}', -1, null);

export async function readMetadata(stream: string, signal?: AbortSignal): Promise<StreamMetadata> {
  try {
    for await (const [line] of lines<LineDocument>(`${addressOf(`$$${stream}`)}/head/backward/1`, signal)) {
      if (line !== undefined) return parseMetadata(line.data ?? '', line.positionEventNumber, line.updated);
    }
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 'stream_not_found') throw error;
  }
  return NO_METADATA;
}

export function parseMetadata(text: string, version: number, writtenAt: string | null): StreamMetadata {
  const value = text === '' ? {} : parseJson(text);
  const isObject =
    typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof ExactNumber);
  const members = isObject ? (value as Readonly<Record<string, Json>>) : {};
  const { $maxCount, $maxAge, $tb, $cacheControl, $acl } = members;
  const list = $acl === undefined ? {} : accessListOf($acl);
  const numbers = [$maxCount, $maxAge, $cacheControl].every((one) => one === undefined || typeof one === 'number');
  const isDeleted =
    $tb instanceof ExactNumber ? $tb.source === EVERYTHING : typeof $tb === 'number' && $tb > Number.MAX_SAFE_INTEGER;
  return {
    version,
    writtenAt,
    text,
    maxCount: positive($maxCount),
    maxAge: positive($maxAge),
    truncateBefore: isDeleted || typeof $tb !== 'number' || $tb < 0 ? null : $tb,
    isDeleted,
    cacheControl: positive($cacheControl),
    acl: list ?? {},
    others: Object.fromEntries(Object.entries(members).filter(([key]) => !KNOWN.has(key))),
    isOdd: !isObject || list === null || !numbers || ($tb !== undefined && !isDeleted && typeof $tb !== 'number'),
  };
}

function positive(value: Json | undefined): number | null {
  return typeof value === 'number' && value > 0 ? value : null;
}

function accessListOf(value: Json): AccessList | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || value instanceof ExactNumber) return null;
  const list: Partial<Record<Right, readonly string[]>> = {};
  for (const right of RIGHT_NAMES) {
    const names = (value as Readonly<Record<string, Json>>)[RIGHTS[right].key];
    if (names == null) continue;
    if (typeof names === 'string') list[right] = [names];
    else if (Array.isArray(names) && names.every((name) => typeof name === 'string'))
      list[right] = names as readonly string[];
    else return null;
  }
  return list;
}

export type MetadataChange = Pick<
  StreamMetadata,
  'maxCount' | 'maxAge' | 'truncateBefore' | 'isDeleted' | 'cacheControl' | 'acl' | 'others'
>;

export function formatMetadata({
  maxCount,
  maxAge,
  truncateBefore,
  isDeleted,
  cacheControl,
  acl,
  others,
}: MetadataChange): string {
  const rights = RIGHT_NAMES.flatMap((right) => {
    const names = acl[right];
    return names === undefined ? [] : [[RIGHTS[right].key, names.length === 1 ? names[0]! : names] as const];
  });
  const members: Record<string, Json> = {
    ...(maxCount !== null && { $maxCount: maxCount }),
    ...(maxAge !== null && { $maxAge: maxAge }),
    ...(isDeleted ? { $tb: new ExactNumber(EVERYTHING) } : truncateBefore !== null && { $tb: truncateBefore }),
    ...(cacheControl !== null && { $cacheControl: cacheControl }),
    ...(rights.length > 0 && { $acl: Object.fromEntries(rights) }),
  };
  return formatJson({ ...members, ...others }, 2);
}

/** Fails with `wrong_expected_version` where another writer was quicker. */
export async function writeMetadata(stream: string, text: string, expectedVersion: number): Promise<void> {
  await send('POST', addressOf(stream, 'metadata'), text, {
    headers: { 'es-eventid': newUuid(), 'es-expectedversion': String(expectedVersion) },
  });
}

/** `admin, $ops and everybody`. */
export function whoText(names: readonly string[]): string {
  if (names.length === 0) return 'administrators only';
  const words = names.map((name) =>
    name === '$all' ? 'everybody' : name === '$admins' ? 'administrators' : name === '$ops' ? 'operators' : name,
  );
  return words.length === 1 ? words[0]! : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`;
}
