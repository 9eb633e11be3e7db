import { guidFromUuidBytes, guidToText } from '../base/guid.ts';

/** Random identifiers. */
export interface Ids {
  /** 16 random bytes of a version 4 UUID, in textual (big-endian) order. */
  uuidBytes(): Uint8Array;
}

/** A new identifier as text. */
export function newId(ids: Ids): string {
  return guidToText(guidFromUuidBytes(ids.uuidBytes()), 0);
}
