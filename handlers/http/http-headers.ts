import { SkuaError } from '../../core/base/errors.ts';
import { ANY, STREAM_EXISTS } from '../../core/streams/api.ts';
import { guidFromText, guidIsEmpty } from '../../core/base/guid.ts';

/**
 * Our own request headers exist in two families of names; the current one is looked at first. Lookups use lower case,
 * which server adapters take as it is.
 */
interface HeaderNames {
  readonly current: string;
  readonly older: string;
  /** As in error texts. */
  readonly name: string;
}

function family(name: string): HeaderNames {
  return { current: `kurrent-${name.toLowerCase()}`, older: `es-${name.toLowerCase()}`, name };
}

const EXPECTED_VERSION = family('ExpectedVersion');
const EVENT_ID = family('EventId');
const EVENT_TYPE = family('EventType');
const REQUIRE_LEADER = family('RequireLeader');
const RESOLVE_LINKS = family('ResolveLinkTos');
const HARD_DELETE = family('HardDelete');
const LONG_POLL = family('LongPoll');

/** Longer long polls are answered after this many seconds. */
const LONG_POLL_SECONDS_MAX = 3_600;
/** Expected versions and event numbers beyond our range but within 64 bits: they exist in no stream. */
const UNREACHABLE_NUMBER = Number.MAX_SAFE_INTEGER - 1;
const I64_MAX = 9_223_372_036_854_775_807n;

/** The value given under either name, or null. An empty value counts as absent. */
function given(headers: Headers, names: HeaderNames): string | null {
  return headers.get(names.current) || headers.get(names.older) || null;
}

function wrongFormat(headers: Headers, names: HeaderNames): SkuaError {
  const name = `${headers.get(names.current) ? 'Kurrent' : 'ES'}-${names.name}`;
  return new SkuaError('bad_header', `${name} header in wrong format.`, { header: name });
}

function booleanHeader(headers: Headers, names: HeaderNames, absent: boolean): boolean {
  const value = given(headers, names);
  if (value === null) return absent;
  const flag = booleanOf(value);
  if (flag === null) throw wrongFormat(headers, names);
  return flag;
}

function booleanOf(value: string): boolean | null {
  const lower = value.toLowerCase();
  return lower === 'true' ? true : lower === 'false' ? false : null;
}

/** The expected version, `ANY` when absent. Throws `bad_header`. */
export function expectedVersionOf(headers: Headers): number {
  const value = given(headers, EXPECTED_VERSION);
  if (value === null) return ANY;
  const number = integer64(value);
  if (number === null || number < STREAM_EXISTS || number === -3) throw wrongFormat(headers, EXPECTED_VERSION);
  return number;
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * Clients send text as UTF-8, of which a header shows one character a byte. Values that are no UTF-8 stay as they are.
 */
function utf8Of(value: string): string {
  if (!/[\x80-\xff]/.test(value) || /[\u0100-\uffff]/.test(value)) return value;
  try {
    return utf8.decode(Uint8Array.from(value, (character) => character.charCodeAt(0)));
  } catch {
    return value;
  }
}

/** A decimal integer of 64 bits, clamped to UNREACHABLE_NUMBER; null for anything else. */
export function integer64(text: string): number | null {
  if (!/^-?\d{1,19}$/.test(text)) return null;
  const number = Number(text);
  if (Number.isSafeInteger(number)) return number === 0 ? 0 : Math.min(number, UNREACHABLE_NUMBER);
  const exact = BigInt(text);
  if (exact > I64_MAX || exact < -I64_MAX - 1n) return null;
  return exact > 0n ? UNREACHABLE_NUMBER : Number.MIN_SAFE_INTEGER;
}

const scratch = new Uint8Array(16);

/** True for a UUID that may identify an event: well-formed and not all zero. */
export function isUsableEventId(text: string): boolean {
  return guidFromText(text, scratch, 0) && !guidIsEmpty(scratch, 0);
}

/** The id of a single posted event, or null. Throws `bad_header`. */
export function eventIdOf(headers: Headers): string | null {
  const value = given(headers, EVENT_ID);
  if (value !== null && !isUsableEventId(value)) throw wrongFormat(headers, EVENT_ID);
  return value;
}

export function eventTypeOf(headers: Headers): string | null {
  const value = given(headers, EVENT_TYPE);
  return value === null ? null : utf8Of(value);
}

/**
 * Checks the form of the require-leader headers. A single node always leads; a member has sent the caller on before
 * (forward.ts).
 */
export function checkRequireLeader(headers: Headers): void {
  booleanHeader(headers, REQUIRE_LEADER, false);
  const oldest = headers.get('es-requiremaster');
  if (oldest && booleanOf(oldest) === null)
    throw new SkuaError('bad_header', 'ES-RequireMaster header in wrong format.', { header: 'ES-RequireMaster' });
}

/** Whether the caller asks for the leader alone. A value of another form is refused where the request is looked at. */
export function requiresLeader(headers: Headers): boolean {
  const value = given(headers, REQUIRE_LEADER) ?? headers.get('es-requiremaster');
  return value !== null && booleanOf(value) === true;
}

export function resolveLinksOf(headers: Headers, absent: boolean): boolean {
  return booleanHeader(headers, RESOLVE_LINKS, absent);
}

export function hardDeleteOf(headers: Headers): boolean {
  return booleanHeader(headers, HARD_DELETE, false);
}

/** Seconds to wait for new events, 0 when not asked for. Throws `bad_header`. */
export function longPollSecondsOf(headers: Headers): number {
  const value = given(headers, LONG_POLL);
  if (value === null) return 0;
  const seconds = /^\d{1,10}$/.test(value) ? Number(value) : 0;
  if (seconds === 0) throw wrongFormat(headers, LONG_POLL);
  return Math.min(seconds, LONG_POLL_SECONDS_MAX);
}
