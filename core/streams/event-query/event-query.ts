import {
  attributeMembers,
  CORRELATION_MEMBER,
  isAttribute,
  mayHaveMember,
  TAGS_MEMBER,
  tagsOf,
} from '../../attributes/format/attribute-texts.ts';
import { ATTRIBUTE_BYTES_MAX, TAGS_MAX } from '../../attributes/format/attribute-keys.ts';
import { equalBytes, viewAt } from '../../base/bytes.ts';
import { SkuaError } from '../../base/errors.ts';
import { encodeText, internText } from '../../base/text.ts';
import { keptMetadata } from '../../log/format/redaction.ts';
import { EVENT_TYPE_LENGTH_MAX, type EventQuery, QUERY_ITEMS_MAX, QUERY_TYPES_MAX } from '../api.ts';
import type { Lookup } from '../lookup/lookup.ts';

/** Codes of `-`, behind which a name goes on after its category, and `$`, with which no name with a category begins. */
const DASH = 0x2d;
const DOLLAR = 0x24;

function refuse(why: string): never {
  throw new SkuaError('bad_request', `The query can't be used: ${why}.`, {});
}

/** Throws `bad_request` for what no query can be. */
export function checkQuery({ category, types, correlation, tags, anyOf }: EventQuery): void {
  if (anyOf !== undefined) {
    if (anyOf.length === 0 || anyOf.length > QUERY_ITEMS_MAX)
      refuse(`it has ${anyOf.length} items. Give 1 to ${QUERY_ITEMS_MAX}`);
    const isAlone = category === undefined && types === undefined && correlation === undefined && tags === undefined;
    for (const item of anyOf) {
      if (!isAlone || item.anyOf !== undefined) refuse('items stand alone, and have none themselves');
      checkQuery(item);
    }
    return;
  }
  if (category === undefined && types === undefined && correlation === undefined && tags === undefined)
    refuse('it asks for nothing. Give a category, types, a correlation or tags');
  if (category !== undefined && (category === '' || category.includes('-') || !category.isWellFormed()))
    refuse('a category is what stands before the first - of a name: it is not empty, and has no - itself');
  if (types !== undefined) {
    if (types.length === 0 || types.length > QUERY_TYPES_MAX)
      refuse(`it has ${types.length} types. Give 1 to ${QUERY_TYPES_MAX}`);
    if (types.some((type) => type === '' || type.length > EVENT_TYPE_LENGTH_MAX || !type.isWellFormed()))
      refuse(`a type has 1 to ${EVENT_TYPE_LENGTH_MAX} characters`);
  }
  if (correlation !== undefined && !isWanted(correlation))
    refuse(`a correlation has 1 to ${ATTRIBUTE_BYTES_MAX} bytes of UTF-8`);
  if (tags === undefined) return;
  if (tags.length === 0 || tags.length > TAGS_MAX) refuse(`it has ${tags.length} tags. Give 1 to ${TAGS_MAX}`);
  if (!tags.every(isWanted)) refuse(`a tag has 1 to ${ATTRIBUTE_BYTES_MAX} bytes of UTF-8`);
}

function isWanted(text: string): boolean {
  return text.isWellFormed() && isAttribute(text);
}

/** What names of indexes begin with, as newer clients of the reference send them in the place of a prefix. */
const INDEX_PREFIX = '$idx-';
const CATEGORY_PREFIX = '$idx-ce-';
const TYPE_PREFIX = '$idx-et-';

/** Whether prefixes of names of streams name an index. */
export function namesIndex(prefixes: readonly string[]): boolean {
  return prefixes.some((prefix) => prefix.startsWith(INDEX_PREFIX));
}

/**
 * The query that prefixes of names of streams ask for, which name an index. Throws `bad_request` for what is none, and
 * for more than one.
 */
export function queryOfIndex(prefixes: readonly string[]): EventQuery {
  const [name = ''] = prefixes;
  if (prefixes.length !== 1)
    refuse(`it names an index among ${prefixes.length} prefixes. Name one index, and nothing else`);
  const query = name.startsWith(CATEGORY_PREFIX)
    ? { category: name.slice(CATEGORY_PREFIX.length) }
    : name.startsWith(TYPE_PREFIX)
      ? { types: [name.slice(TYPE_PREFIX.length)] }
      : refuse(`there is no index ${name}. Give ${CATEGORY_PREFIX} and a category, or ${TYPE_PREFIX} and a type`);
  checkQuery(query);
  return query;
}

/** Judges records by their bytes: what is cheapest to see comes first. */
export class QueryMatcher {
  readonly #category: Uint8Array | null;
  readonly #types: ReadonlySet<string> | null;
  readonly #correlation: string | null;
  readonly #tags: readonly string[];
  readonly #asksMetadata: boolean;
  readonly #any: readonly QueryMatcher[] | null;

  /** The query has been checked. */
  constructor({ category, types, correlation, tags = [], anyOf }: EventQuery) {
    this.#any = anyOf === undefined ? null : anyOf.map((item) => new QueryMatcher(item));
    this.#category = category === undefined ? null : encodeText(category);
    this.#types = types === undefined ? null : new Set(types);
    this.#correlation = correlation ?? null;
    this.#tags = tags;
    this.#asksMetadata = correlation !== undefined || tags.length > 0;
  }

  /** Whether the event in the lookup's frame, as readers see it, is what is asked for. */
  matches(lookup: Lookup): boolean {
    if (this.#any !== null) return this.#any.some((item) => item.matches(lookup));
    const { frame, fields: f } = lookup;
    if (this.#category !== null && !this.#isOfCategory(frame.bytes, f.streamAt, f.streamLength, this.#category))
      return false;
    if (this.#types !== null && !this.#types.has(internText(frame.bytes, f.typeAt, f.typeLength))) return false;
    return !this.#asksMetadata || this.#hasAttributes(lookup);
  }

  #isOfCategory(bytes: Uint8Array, at: number, length: number, category: Uint8Array): boolean {
    if (length < category.length || bytes[at] === DOLLAR) return false;
    if (length > category.length && bytes[at + category.length] !== DASH) return false;
    return equalBytes(bytes, at, category, 0, category.length);
  }

  #hasAttributes({ frame, fields, redactions }: Lookup): boolean {
    if (fields.metadataLength === 0) return false;
    let metadata = viewAt(frame.bytes, fields.metadataAt, fields.metadataLength);
    if (this.#correlation !== null && !mayHaveMember(metadata, CORRELATION_MEMBER)) return false;
    if (this.#tags.length > 0 && !mayHaveMember(metadata, TAGS_MEMBER)) return false;
    const mark = redactions.of(frame, fields);
    if (mark !== null) metadata = keptMetadata(metadata, mark.keys);
    const members = attributeMembers(metadata);
    if (members === null) return false;
    if (this.#correlation !== null && members.correlation !== this.#correlation) return false;
    if (this.#tags.length === 0) return true;
    const tags = tagsOf(members.tags);
    return this.#tags.every((tag) => tags.includes(tag));
  }
}
