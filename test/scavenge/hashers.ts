import { streamHasher, type Hash64, type StreamHasher } from '../../core/base/stream-hash.ts';

/** Hashes of names that were changed first, so that several streams share one. */
function hashOfChanged(change: (name: string) => string): StreamHasher {
  const hash = (name: string, out: Hash64): void => streamHasher.hash(change(name), out);
  return {
    hash,
    hashUtf8: (bytes, at, length, out) =>
      hash(Buffer.from(bytes.buffer, bytes.byteOffset + at, length).toString('utf8'), out),
  };
}

export const HASHERS = {
  plain: streamHasher,
  /** Streams whose last digits are both even, or both odd, share a hash, and so do their metastreams. */
  pairs: hashOfChanged((name) => name.replace(/\d$/, (digit) => String(Number(digit) % 2))),
  /** A stream and its metastream share a hash. */
  withMetastream: hashOfChanged((name) => name.replace(/^\$\$/, '')),
  all: hashOfChanged(() => 'one'),
} as const satisfies Readonly<Record<string, StreamHasher>>;

export type HasherName = keyof typeof HASHERS;
