import { decodeText, encodeText } from '../text.ts';

/**
 * Events of `$webhook-<id>-deliveries`. The id of a note is the id of the event that it announces, so that the memory can
 * be filled without reading what notes say.
 */

/** Announces the event of a delivery; it is durable before that event is sent to the log. */
export const NOTE_TYPE = '$webhook-delivery';
/** A note whose event will not be written: the delivery counts as never seen. */
export const WITHDRAWAL_TYPE = '$webhook-delivery-withdrawn';

export interface DeliveryNote {
  readonly deliveryId: string;
  /** Where the event goes, and its type. */
  readonly stream: string;
  readonly type: string;
  /** Last event number of that stream before the event: it stands behind this one, if it is there. */
  readonly after: number;
  /** Who wrote the note: a random text for each deduplication that was opened. */
  readonly writer: string;
  /** The events of this writer's notes before this number are written, or their notes withdrawn. */
  readonly settled: number;
}

export function encodeNote({ deliveryId, stream, type, after, writer, settled }: DeliveryNote): Uint8Array {
  return encodeText(JSON.stringify({ deliveryId, stream, type, after, writer, settled }));
}

/** Null for what is no note: others can write to the stream as administrators. */
export function parseNote(data: Uint8Array): DeliveryNote | null {
  const value = parse(data);
  if (value === null) return null;
  const { deliveryId, stream, type, after, writer, settled } = value as Partial<Record<keyof DeliveryNote, unknown>>;
  if (typeof deliveryId !== 'string' || typeof stream !== 'string' || typeof type !== 'string' || typeof writer !== 'string') return null;
  return isNumber(after) && isNumber(settled) ? { deliveryId, stream, type, after, writer, settled } : null;
}

export function encodeWithdrawal(number: number): Uint8Array {
  return encodeText(JSON.stringify({ number }));
}

/** Number of the note that is withdrawn, null for what is no withdrawal. */
export function parseWithdrawal(data: Uint8Array): number | null {
  const number = (parse(data) as { readonly number?: unknown } | null)?.number;
  return isNumber(number) ? number : null;
}

function isNumber(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= -1;
}

function parse(data: Uint8Array): object | null {
  try {
    const value: unknown = JSON.parse(decodeText(data));
    return typeof value === 'object' ? value : null;
  } catch {
    return null;
  }
}

/** Digits that say the version and variant of a UUID, and hyphens. */
const KEPT: ReadonlySet<number> = new Set([8, 13, 14, 18, 19, 23]);

/**
 * The id of the note about an event, and of the event that a note is about: all bits turned round but those of version
 * and variant. With the event's own id a note would be a trace of it in the log after the event was erased.
 */
export function mirrorId(id: string): string {
  let mirrored = '';
  for (let i = 0; i < id.length; i++) mirrored += KEPT.has(i) ? id[i]! : (15 - Number.parseInt(id[i]!, 16)).toString(16);
  return mirrored;
}
