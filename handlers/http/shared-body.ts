import type { Coding, ReplyBody } from './context.ts';

/** The compressed forms that have been asked for. */
type Compressed = Map<Coding, Promise<ReplyBody>>;

const SHARED = new WeakMap<object, Compressed>();

/**
 * Makes these bytes the body of any number of replies at once: they are kept once, compressed once, and counted for
 * none of those. No code may change the bytes.
 */
export function sharedBody(bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  if (!SHARED.has(bytes)) SHARED.set(bytes, new Map());
  return bytes;
}

/** Whether a body is there whether or not this reply is sent. */
export function isSharedBody(body: object): boolean {
  return SHARED.has(body);
}

/** The compressed form of a shared body, made for the first reply that asks; that of another body is made each time. */
export function compressedOnce(
  body: ReplyBody,
  coding: Coding,
  compress: () => ReplyBody | Promise<ReplyBody> | null,
): ReplyBody | Promise<ReplyBody> | null {
  const made = typeof body === 'string' ? undefined : SHARED.get(body);
  if (made === undefined) return compress();
  const known = made.get(coding);
  if (known !== undefined) return known;
  const compressed = compress();
  // What comes bit by bit is for one reader.
  if (!(compressed instanceof Promise)) return compressed;
  const kept = compressed.then((bytes) => (bytes instanceof Uint8Array ? sharedBody(bytes) : bytes));
  made.set(coding, kept);
  kept.catch(() => made.delete(coding));
  return kept;
}
