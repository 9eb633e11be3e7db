/**
 * What a document that comes from storage may hold. A shape says which member is the first that is not as it should be,
 * and nothing else: members that no shape names are those of newer versions, and are passed over. A document is acted
 * upon only when its shape has found nothing wrong with all of it.
 */
export interface Shape<out T> {
  /** Null when the value is as it should be. `member` names it, for the answer. */
  (value: unknown, member: string): Wrong | null;
  /** Never there: what the value is afterwards. */
  readonly of?: T;
}

export interface Wrong {
  /** As in `chunks[3].path`. */
  readonly member: string;
  /** Completes "<member> ...". */
  readonly why: string;
}

/** Characters of a wrong value that a message shows. */
const SHOWN_MAX = 60;

/** A value of foreign origin, for a message: nothing in the text can steer a terminal. */
function shownValue(value: unknown): string {
  const text = (JSON.stringify(value) ?? 'missing').slice(0, SHOWN_MAX + 1).replace(/[^\x20-\x7e]/g, '?');
  return text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}...` : text;
}

function shape<T>(isSound: (value: unknown) => boolean, what: string): Shape<T> {
  return (value, member) =>
    isSound(value)
      ? null
      : { member, why: value === undefined ? 'is missing' : `is ${shownValue(value)}, which is not ${what}` };
}

/** A whole number from `least` to `most`. */
export function whole(least: number, most: number = Number.MAX_SAFE_INTEGER): Shape<number> {
  return shape(
    (value) => Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most,
    `a whole number from ${least} to ${most}`,
  );
}

/** Milliseconds since 1970, possibly with a fraction. */
export const moment: Shape<number> = shape(
  (value) => typeof value === 'number' && value >= 0 && value <= Number.MAX_SAFE_INTEGER,
  'a time in milliseconds',
);

export const flag: Shape<boolean> = shape((value) => typeof value === 'boolean', 'true or false');

/**
 * A text that the expression matches whole: it says where it begins and ends, and bounds its length. `what` as the end
 * of "which is not ...".
 */
export function text(expression: RegExp, what: string): Shape<string> {
  return shape((value) => typeof value === 'string' && expression.test(value), what);
}

/** A text that may say anything, at most so many characters. */
export function words(lengthMax: number): Shape<string> {
  return shape(
    (value) => typeof value === 'string' && value.length <= lengthMax,
    `a text of at most ${lengthMax} characters`,
  );
}

export const uuid: Shape<string> = text(/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/, 'a UUID');

/** Exactly so many hex digits, or of `least` to `digits`. */
export function hexDigits(digits: number, least: number = digits): Shape<string> {
  return shape(
    (value) =>
      typeof value === 'string' && value.length >= least && value.length <= digits && /^[0-9a-f]*$/.test(value),
    `${least === digits ? digits : `${least} to ${digits}`} hex digits`,
  );
}

export function oneOf<const T extends string | number | boolean>(...values: readonly T[]): Shape<T> {
  return shape((value) => values.includes(value as T), values.map((value) => JSON.stringify(value)).join(' or '));
}

export function orNull<T>(inner: Shape<T>): Shape<T | null> {
  return (value, member) => (value === null ? null : inner(value, member));
}

/** A member that may be left out. */
export function optional<T>(inner: Shape<T>): Shape<T | undefined> {
  return (value, member) => (value === undefined ? null : inner(value, member));
}

export function listOf<T>(inner: Shape<T>, most: number): Shape<readonly T[]> {
  return (value, member) => {
    if (!Array.isArray(value)) return { member, why: value === undefined ? 'is missing' : 'is not an array' };
    if (value.length > most)
      return { member, why: `has ${value.length} entries, more than the ${most} that there can be` };
    for (let i = 0; i < value.length; i++) {
      const wrong = inner(value[i], `${member}[${i}]`);
      if (wrong !== null) return wrong;
    }
    return null;
  };
}

/** Every member of the type has a shape, or this does not compile. */
export function record<T extends object>(members: { readonly [K in keyof Required<T>]: Shape<T[K]> }): Shape<T> {
  const shapes = Object.entries(members) as readonly [string, Shape<unknown>][];
  return (value, member) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      return { member, why: value === undefined ? 'is missing' : 'is not an object' };
    for (const [name, inner] of shapes) {
      const wrong = inner(
        Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined,
        member === '' ? name : `${member}.${name}`,
      );
      if (wrong !== null) return wrong;
    }
    return null;
  };
}

/** Any number of members up to `most`, whose names the expression matches. */
export function mapOf<T>(names: RegExp, inner: Shape<T>, most: number): Shape<Readonly<Record<string, T>>> {
  return (value, member) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      return { member, why: value === undefined ? 'is missing' : 'is not an object' };
    const entries = Object.entries(value as Record<string, unknown>);
    if (entries.length > most)
      return { member, why: `has ${entries.length} members, more than the ${most} that there can be` };
    for (const [name, one] of entries) {
      if (!names.test(name)) return { member, why: `has the member ${shownValue(name)}, which is no name of one` };
      const wrong = inner(one, `${member}.${name}`);
      if (wrong !== null) return wrong;
    }
    return null;
  };
}

/** A shape and what no shape of a member can say: `more` is asked when the members are as they should be. */
export function also<T>(inner: Shape<T>, more: (value: T) => Wrong | null): Shape<T> {
  return (value, member) => inner(value, member) ?? more(value as T);
}

/** `"<member>" <why>`, with the document itself where `member` is empty. */
export function wrongText({ member, why }: Wrong): string {
  return member === '' ? `contains a document that ${why}` : `has an invalid member: ${member} ${why}`;
}
