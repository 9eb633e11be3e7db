import { guidFromUuidBytes, guidToText } from '../../base/guid.ts';
import type { Keys } from '../../ports/keys.ts';
import { encodeText } from '../../base/text.ts';
import type { Authorize, NewEvent } from '../../streams/api.ts';
import type { ActiveConnector } from '../api.ts';
import { namedScheme } from '../format/schemes.ts';

/** An accepted call on its way into its stream. */
export interface Delivery {
  /** Null where the sender gives none, or deliveries are not told apart. */
  readonly deliveryId: string | null;
  readonly eventId: string;
  readonly data: Uint8Array;
  readonly metadata: Uint8Array;
  /**
   * Null where nothing can come between acceptance and event: a sender that got the answer "accepted" gets no other.
   */
  readonly authorize: Authorize | null;
  /**
   * Where the event goes, and its type; those that a note of an earlier version names win. Empty until the script has
   * named them.
   */
  stream: string;
  type: string;
}

/**
 * What decides in its turn whether the event of a delivery may be written; asked for before each attempt, since lists
 * may have changed.
 */
export type AuthorizeDelivery = (delivery: Delivery) => Authorize | null | Promise<Authorize | null>;

export function eventOf({ eventId, type, data, metadata }: Delivery): NewEvent {
  return { id: eventId, type, isJson: true, data, metadata };
}

/** Where senders put the id of a delivery, and the event id that follows from it. */

/** Longer ids are none: no sender has them, and each id is kept for days. */
export const DELIVERY_ID_LENGTH_MAX = 512;

/** Looked at, in this order, where the scheme's sender has no header of its own. */
const COMMON_HEADERS: readonly string[] = ['x-github-delivery', 'webhook-id', 'svix-id'];
/** Senders that name the delivery in the body, and the member there. */
const BODY_MEMBERS: ReadonlyMap<string, string> = new Map([
  ['stripe', 'id'],
  ['providerd', 'id'],
  ['slack', 'event_id'],
  ['providerc', 'event_id'],
]);

/** Finds the delivery's id in a call; null where the sender gives none, or an unusable one. */
export type DeliveryIdOf = (headers: ReadonlyMap<string, string>, bodyText: string) => string | null;

/** How deliveries of this connector are told apart; null when they are not. */
export function deliveryIdOf({ settings: { deduplication, signature } }: ActiveConnector): DeliveryIdOf | null {
  if (!deduplication.enabled) return null;
  if (deduplication.header !== null) return inHeaders([deduplication.header]);
  const scheme = signature?.scheme.toLowerCase() ?? '';
  const member = BODY_MEMBERS.get(scheme);
  if (member !== undefined) return (_headers, bodyText) => usable(idOfBody(bodyText, member));
  const named = namedScheme(scheme);
  const own = named?.deliveryHeader?.toLowerCase() ?? null;
  if (own === null) return inHeaders(COMMON_HEADERS);
  const { header, formerNames } = named!;
  if (formerNames === null) return inHeaders([own]);
  // Of the names under which the call is signed.
  const signedBy = header.toLowerCase();
  return (headers) =>
    usable(headers.get(headers.has(signedBy) || !headers.has(formerNames.signature) ? own : formerNames.id));
}

function inHeaders(names: readonly string[]): DeliveryIdOf {
  return (headers) => {
    for (const name of names) {
      const id = usable(headers.get(name));
      if (id !== null) return id;
    }
    return null;
  };
}

function usable(id: string | undefined): string | null {
  return id !== undefined && id !== '' && id.length <= DELIVERY_ID_LENGTH_MAX && id.isWellFormed() ? id : null;
}

/** `bodyText` is known to be JSON. */
function idOfBody(bodyText: string, member: string): string | undefined {
  const value: unknown = JSON.parse(bodyText);
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, member)) return undefined;
  const id = (value as Readonly<Record<string, unknown>>)[member];
  return typeof id === 'string' ? id : undefined;
}

/** Separates these ids from whatever else is ever derived by the same function. No secret. */
const LABEL = encodeText('skua webhook delivery');

/**
 * The event id of a delivery: UUID version 8 (RFC 9562, 5.8) of the HMAC-SHA256 over connector and delivery id, as
 * lower-case text. A connector that was deleted and created again is another one: with the same ids, the store could
 * take its first events for repeats of the old ones.
 */
export function deliveryEventId(keys: Keys, { connectorId, incarnation }: ActiveConnector, deliveryId: string): string {
  const hex = keys.hmacText('sha256', LABEL, encodeText(`${connectorId}\0${incarnation}\0${deliveryId}`), 'hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${VARIANTS[Number.parseInt(hex[16]!, 16) & 3]!}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

/** The digit with the two bits of the variant, by the two bits beside them. */
const VARIANTS = ['8', '9', 'a', 'b'] as const;

/** The text of 16 bytes in textual order. */
export function uuidText(uuid: Uint8Array): string {
  return guidToText(guidFromUuidBytes(uuid), 0);
}
