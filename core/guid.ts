/**
 * GUIDs are stored with their first three groups byte-reversed (disk-format.md section 0) and written as lower-case
 * text `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`.
 */
const HEX: readonly string[] = Array.from({ length: 256 }, (_, i) => i.toString(16).padStart(2, '0'));

/** The text of the 16 on-disk bytes at `at`. */
export function guidToText(b: Uint8Array, at: number): string {
  return HEX[b[at + 3]!]! + HEX[b[at + 2]!]! + HEX[b[at + 1]!]! + HEX[b[at]!]! + '-' +
    HEX[b[at + 5]!]! + HEX[b[at + 4]!]! + '-' + HEX[b[at + 7]!]! + HEX[b[at + 6]!]! + '-' +
    HEX[b[at + 8]!]! + HEX[b[at + 9]!]! + '-' +
    HEX[b[at + 10]!]! + HEX[b[at + 11]!]! + HEX[b[at + 12]!]! + HEX[b[at + 13]!]! + HEX[b[at + 14]!]! + HEX[b[at + 15]!]!;
}

/** Value of each hex digit by character code, 255 for anything else. */
const NIBBLE = new Uint8Array(128).fill(255);
for (let i = 0; i < 16; i++) {
  NIBBLE['0123456789abcdef'.charCodeAt(i)] = i;
  NIBBLE['0123456789ABCDEF'.charCodeAt(i)] = i;
}
/** Where in the text the two digits of on-disk byte i stand. */
const TEXT_AT = [6, 4, 2, 0, 11, 9, 16, 14, 19, 21, 24, 26, 28, 30, 32, 34];

/** Writes the on-disk bytes of a GUID's text at `at`. False, with nothing useful written, when the text is no GUID. */
export function guidFromText(text: string, out: Uint8Array, at: number): boolean {
  if (text.length !== 36 || text.charCodeAt(8) !== 45 || text.charCodeAt(13) !== 45 || text.charCodeAt(18) !== 45 || text.charCodeAt(23) !== 45) return false;
  let bad = 0;
  for (let i = 0; i < 16; i++) {
    const t = TEXT_AT[i]!;
    const high = NIBBLE[text.charCodeAt(t)] ?? 255;
    const low = NIBBLE[text.charCodeAt(t + 1)] ?? 255;
    bad |= high | low;
    out[at + i] = (high << 4) | low;
  }
  return bad < 16;
}

/** True for the GUID of sixteen zero bytes, which no record may carry. */
export function guidIsEmpty(b: Uint8Array, at: number): boolean {
  for (let i = 0; i < 16; i++) if (b[at + i] !== 0) return false;
  return true;
}

/** The on-disk bytes of a UUID given in textual (big-endian) order. */
export function guidFromUuidBytes(uuid: Uint8Array): Uint8Array {
  const out = new Uint8Array(16);
  for (let i = 0; i < 16; i++) out[i] = uuid[ORDER[i]!]!;
  return out;
}
const ORDER = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
