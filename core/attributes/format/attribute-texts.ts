import { decodeText, encodeText } from '../../base/text.ts';
import { ATTRIBUTE_BYTES_MAX, TAGS_MAX } from './attribute-keys.ts';

/** The attributes that the metadata of an event name. */

const CORRELATION_NAME = '$correlationId';
export const TAGS_NAME = '$tags';
/** The names with their quotes: metadata without these bytes are not parsed. */
export const CORRELATION_MEMBER = encodeText(`"${CORRELATION_NAME}"`);
export const TAGS_MEMBER = encodeText(`"${TAGS_NAME}"`);

/** Code of `$`, of which JSON has few, so that it is quickly looked for. */
const DOLLAR = 0x24;

/** Whether the bytes hold the quoted name of a member that begins with `$`. */
export function mayHaveMember(metadata: Uint8Array, member: Uint8Array): boolean {
  for (let found = metadata.indexOf(DOLLAR); found >= 0; found = metadata.indexOf(DOLLAR, found + 1)) {
    const from = found - 1;
    if (from < 0) continue;
    let same = 0;
    while (same < member.length && metadata[from + same] === member[same]) same++;
    if (same === member.length) return true;
  }
  return false;
}

/** Whether a value is a text of 1 to ATTRIBUTE_BYTES_MAX bytes of UTF-8. */
export function isAttribute(value: unknown): value is string {
  if (typeof value !== 'string' || value === '' || value.length > ATTRIBUTE_BYTES_MAX) return false;
  return value.length * 3 <= ATTRIBUTE_BYTES_MAX || encodeText(value).length <= ATTRIBUTE_BYTES_MAX;
}

/** What of metadata says what an event belongs to, as it was written: of any type. */
interface AttributeMembers {
  readonly correlation: unknown;
  readonly tags: unknown;
}

/** The members of metadata, where they are a JSON object; else null. */
export function attributeMembers(metadata: Uint8Array): AttributeMembers | null {
  let value: unknown;
  try {
    value = JSON.parse(decodeText(metadata));
  } catch {
    return null;
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null;
  const members = value as Readonly<Record<string, unknown>>;
  return { correlation: members[CORRELATION_NAME], tags: members[TAGS_NAME] };
}

/** The tags that count of what `$tags` is. */
export function tagsOf(tags: unknown): readonly string[] {
  return Array.isArray(tags) ? tags.slice(0, TAGS_MAX).filter(isAttribute) : [];
}

const NONE: readonly string[] = [];

/** All attributes that queries can find metadata by. */
export function attributesIn(metadata: Uint8Array): {
  readonly correlation: string | null;
  readonly tags: readonly string[];
} {
  const isWorthReading = mayHaveMember(metadata, CORRELATION_MEMBER) || mayHaveMember(metadata, TAGS_MEMBER);
  const members = isWorthReading ? attributeMembers(metadata) : null;
  if (members === null) return { correlation: null, tags: NONE };
  return { correlation: isAttribute(members.correlation) ? members.correlation : null, tags: tagsOf(members.tags) };
}

/** Why an event must not be appended with these metadata: what `$tags` has beyond the limits; null where nothing. */
export function oddityOfTags(metadata: Uint8Array): string | null {
  if (!mayHaveMember(metadata, TAGS_MEMBER)) return null;
  const tags = attributeMembers(metadata)?.tags;
  if (!Array.isArray(tags)) return null;
  if (tags.length > TAGS_MAX) return `${tags.length} tags`;
  const long = tags.findIndex((tag) => typeof tag === 'string' && tag !== '' && !isAttribute(tag));
  return long < 0 ? null : `a tag of ${encodeText(tags[long] as string).length} bytes`;
}
