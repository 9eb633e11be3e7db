import type { Hash64, StreamHasher } from '../../core/base/stream-hash.ts';

/** A hash that gives every stream the same value: every answer must then come from comparing names. */
export const collidingHasher: StreamHasher = {
  hash(_name: string, out: Hash64): void {
    out.hi = 0x1234_5678;
    out.lo = 0x9abc_def0;
  },
  hashUtf8(_bytes: Uint8Array, _at: number, _length: number, out: Hash64): void {
    out.hi = 0x1234_5678;
    out.lo = 0x9abc_def0;
  },
};
