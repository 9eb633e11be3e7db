/** Random identifiers. */
export interface Ids {
  /** 16 random bytes of a version 4 UUID, in textual (big-endian) order. */
  uuidBytes(): Uint8Array;
}
