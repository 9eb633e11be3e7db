import type { Json } from '../codec.ts';
import { DIRECTORY_END, textOf } from './exchange.ts';

const ALL_ONES = '18446744073709551615';
/** Identifiers that the recorder chose itself, and sent. */
const CHOSEN_ID = /^00000000-0000-4000-8000-/;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const POSITIONS = new Set(['commit_position', 'prepare_position']);
/** What a clock or the speed of a machine decides. */
const MEASURED = new Set([
  'average_items_per_second',
  'average_per_second',
  'count_since_last_measurement',
  'total_items',
  'time_stamp',
  'ticks_since_epoch',
]);
/** Names of the codes within batch answers, as the recorder knew them. */
const CODES: Readonly<Record<number, string>> = {
  2: 'UNKNOWN',
  3: 'INVALID_ARGUMENT',
  4: 'DEADLINE_EXCEEDED',
  5: 'NOT_FOUND',
  6: 'ALREADY_EXISTS',
  7: 'PERMISSION_DENIED',
  13: 'INTERNAL',
};
/** Where an identifier of a node, a scavenge or a subscription stands. */
const GIVEN_IDS = new Set(['scavenge_id', 'instance_id']);

/**
 * Compares answers of ours with recorded ones. What no node decides alike is paired instead of compared: a position
 * behind the end of the recorded directory, or an identifier that a node made, stands for the one of ours that stood in
 * its place first, and only for that one. Positions keep their order.
 */
export class Likeness {
  readonly #positions = new Map<number, number>();
  readonly #ids = new Map<string, string>();
  readonly #idsBack = new Map<string, string>();

  /** Each difference as one line. */
  compare(recorded: unknown, ours: unknown, at: string): string[] {
    const found: string[] = [];
    this.#walk(recorded, ours, at, found);
    return found;
  }

  /** A position that is known without an answer to compare. */
  pair(recorded: string, position: number): void {
    this.#isSamePosition(recorded, String(position));
  }

  /** A request in which positions and identifiers of the recording stand, with ours in their place. */
  translated<T>(json: T): T {
    if (Array.isArray(json)) return json.map((item) => this.translated(item as unknown)) as T;
    if (json instanceof Uint8Array || typeof json !== 'object' || json === null) return json;
    const out: Json = {};
    for (const [key, value] of Object.entries(json)) {
      if (POSITIONS.has(key) && typeof value === 'string') out[key] = this.#positionFor(value);
      else if (key === 'string' || key === 'scavenge_id') out[key] = this.#ids.get(value as string) ?? value;
      else if (key === 'structured' && 'most_significant_bits' in (value as Json))
        out[key] = structuredOf(this.#ids.get(textOfStructured(value as Json)) ?? textOfStructured(value as Json));
      else out[key] = this.translated(value as unknown);
    }
    return out as T;
  }

  /** A position between two that were seen keeps its distance from the one before. */
  #positionFor(text: string): string {
    const recorded = Number(text);
    if (text === ALL_ONES || recorded < DIRECTORY_END) return text;
    let before: number | null = null;
    for (const known of this.#positions.keys())
      if (known <= recorded && (before === null || known > before)) before = known;
    return before === null || recorded - before > 1_000
      ? text
      : String(this.#positions.get(before)! + recorded - before);
  }

  #walk(recorded: unknown, ours: unknown, at: string, found: string[]): void {
    const key = at.slice(at.lastIndexOf('.') + 1);
    if (key === 'methods' && Array.isArray(recorded) && Array.isArray(ours)) {
      this.#walk(featuresOf(recorded as Json[]), featuresOf(ours as Json[]), `${at}Named`, found);
      return;
    }
    if (key === 'stats' && isObject(recorded) && isObject(ours) && isStatistics(ours)) return;
    if (key === 'port' && typeof ours === 'number') return;
    if (key === 'code' && typeof recorded === 'string' && typeof ours === 'number' && CODES[ours] === recorded) return;
    if (
      recorded === ours ||
      (typeof recorded === 'string' && typeof ours === 'string' && this.#isAlike(key, recorded, ours))
    )
      return;
    if (MEASURED.has(key) && (recorded === undefined || ours === undefined || typeof recorded === typeof ours)) return;
    if ((key === 'data' || key === 'custom_metadata') && typeof recorded === 'string' && typeof ours === 'string') {
      const before = found.length;
      const [one, other] = [parsed(recorded), parsed(ours)];
      if (isObject(one) && isObject(other)) this.#walk(one, other, at, found);
      if (found.length === before) found.push(`${at}: ${shown(textOf(ours))} instead of ${shown(textOf(recorded))}`);
      return;
    }
    if (GIVEN_IDS.has(key) && typeof recorded === 'string' && typeof ours === 'string') {
      found.push(`${at}: another one`);
      return;
    }
    if (!isObject(recorded) || !isObject(ours)) {
      found.push(`${at}: ${shown(ours)} instead of ${shown(recorded)}`);
      return;
    }
    if (isEvent(recorded) && isEvent(ours)) {
      this.#event(recorded, ours, at, found);
      return;
    }
    const [one, other] = [uuidOf(recorded), uuidOf(ours)];
    if (one !== null && other !== null) {
      if (Object.keys(recorded)[0] !== Object.keys(ours)[0] || !this.#isSameId(one, other))
        found.push(`${at}: ${shown(ours)} instead of ${shown(recorded)}`);
      return;
    }
    for (const name of new Set([...Object.keys(recorded), ...Object.keys(ours)]))
      if (!name.startsWith('$')) this.#walk(recorded[name], ours[name], `${at}.${name}`, found);
  }

  /**
   * An event from the directory is the same to the last byte; of another one, time, identifier and position may differ.
   */
  #event(recorded: Json, ours: Json, at: string, found: string[]): void {
    const isOld = Number(recorded['prepare_position'] ?? 0) < DIRECTORY_END;
    const created = (event: Json): unknown => event['metadata']['created'];
    if (isOld ? created(recorded) !== created(ours) : !/^\d{17}$/.test(String(created(ours))))
      found.push(`${at}.metadata.created: ${shown(created(ours))} instead of ${shown(created(recorded))}`);
    const bare = (event: Json): Json => ({ ...event, metadata: { ...event['metadata'], created: '' }, isEvent: true });
    const [one, other] = [bare(recorded), bare(ours)];
    for (const name of new Set([...Object.keys(one), ...Object.keys(other)]))
      this.#walk(one[name], other[name], `${at}.${name}`, found);
  }

  #isAlike(key: string, recorded: string, ours: string): boolean {
    if (POSITIONS.has(key)) return this.#isSamePosition(recorded, ours);
    if (GIVEN_IDS.has(key)) return this.#isSameId(recorded, ours);
    if (key === 'subscription_id') return UUID.test(recorded) && UUID.test(ours);
    if (key === 'data' || key === 'custom_metadata') return undated(textOf(recorded)) === undated(textOf(ours));
    const [one, other] = [/^C:(\d+)\/P:(\d+)$/.exec(recorded), /^C:(\d+)\/P:(\d+)$/.exec(ours)];
    return (
      one !== null &&
      other !== null &&
      this.#isSamePosition(one[1]!, other[1]!) &&
      this.#isSamePosition(one[2]!, other[2]!)
    );
  }

  #isSamePosition(recorded: string, ours: string): boolean {
    const [from, to] = [Number(recorded), Number(ours)];
    if (from < DIRECTORY_END || recorded === ALL_ONES) return recorded === ours;
    const known = this.#positions.get(from);
    if (known !== undefined) return known === to;
    for (const [other, paired] of this.#positions) if (other < from !== paired < to) return false;
    this.#positions.set(from, to);
    return true;
  }

  #isSameId(recorded: string, ours: string): boolean {
    if (recorded === ours) return true;
    if (CHOSEN_ID.test(recorded) || !UUID.test(recorded) || !UUID.test(ours)) return false;
    const [known, back] = [this.#ids.get(recorded), this.#idsBack.get(ours)];
    if (known !== undefined || back !== undefined) return known === ours;
    this.#ids.set(recorded, ours);
    this.#idsBack.set(ours, recorded);
    return true;
  }
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null;
}

function isEvent(value: Json): boolean {
  return isObject(value['metadata']) && 'created' in value['metadata'] && isObject(value['stream_identifier']);
}

/** Statistics of another node: names in lower case with dashes, and each value a text. */
function isStatistics(stats: Json): boolean {
  return (
    Object.keys(stats).length > 0 &&
    Object.entries(stats).every(([name, value]) => name.includes('-') && typeof value === 'string')
  );
}

/** Methods by their names: they come in any order. */
function featuresOf(methods: readonly Json[]): Json {
  return Object.fromEntries(
    methods.map((method) => [
      `${method['service_name']}/${method['method_name']}`,
      (method['features'] as string[] | undefined)?.join(', ') ?? '',
    ]),
  );
}

function parsed(base64: string): unknown {
  try {
    return JSON.parse(undated(textOf(base64)));
  } catch {
    return null;
  }
}

function undated(text: string): string {
  return text.replace(/"(updated|added)": "[^"]*"/g, '"$1": ""');
}

/** The text of an identifier in one of its two forms; null for what is none. */
function uuidOf(value: Json): string | null {
  const keys = Object.keys(value);
  if (keys.length !== 1) return null;
  if (typeof value['string'] === 'string') return value['string'];
  return isObject(value['structured']) && 'least_significant_bits' in value['structured']
    ? textOfStructured(value['structured'])
    : null;
}

export function textOfStructured({
  most_significant_bits: most = '0',
  least_significant_bits: least = '0',
}: Json): string {
  const digits = [most, least]
    .map((half) =>
      BigInt.asUintN(64, BigInt(half as string))
        .toString(16)
        .padStart(16, '0'),
    )
    .join('');
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

function structuredOf(text: string): Json {
  const digits = text.replaceAll('-', '');
  const half = (at: number): string => BigInt.asIntN(64, BigInt(`0x${digits.slice(at, at + 16)}`)).toString();
  return { most_significant_bits: half(0), least_significant_bits: half(16) };
}

function shown(value: unknown): string {
  const text = value === undefined ? 'nothing' : JSON.stringify(value);
  return text.length > 160 ? `${text.slice(0, 160)}…` : text;
}
