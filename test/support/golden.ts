/** Worked examples of records as bytes. */

export function bytesOf(hex: string): Uint8Array {
  return Uint8Array.from(hex.trim().split(/\s+/), (byte) => Number.parseInt(byte, 16));
}

/** 2024-01-02T03:04:05.6789012Z, the time of every example. */
export const EXAMPLE_MS = 1_704_164_645_678;
export const EXAMPLE_TICKS = 9_012;

/** Event 0 of `order-42` at position 1000. */
export function examplePrepare(): Uint8Array {
  return bytesOf(`
    73 00 00 00 00 01 e8 03 00 00 00 00 00 00 27 01
    e8 03 00 00 00 00 00 00 00 00 00 00 ff ff ff ff
    ff ff ff ff 08 6f 72 64 65 72 2d 34 32 44 33 22
    11 66 55 88 77 99 aa bb cc dd ee ff 00 0d 0c 0b
    0a 0f 0e 11 10 12 13 14 15 16 17 18 19 14 58 27
    7b 3f 0b dc 08 0b 4f 72 64 65 72 50 6c 61 63 65
    64 0e 00 00 00 7b 22 74 6f 74 61 6c 22 3a 31 32
    2e 35 7d 00 00 00 00 73 00 00 00`);
}

/** The tombstone of the same stream at position 5000. */
export function exampleTombstone(): Uint8Array {
  return bytesOf(`
    68 00 00 00 00 01 88 13 00 00 00 00 00 00 2e 00
    88 13 00 00 00 00 00 00 00 00 00 00 fe ff ff ff
    ff ff ff 7f 08 6f 72 64 65 72 2d 34 32 44 33 22
    11 66 55 88 77 99 aa bb cc dd ee ff 00 0d 0c 0b
    0a 0f 0e 11 10 12 13 14 15 16 17 18 19 14 58 27
    7b 3f 0b dc 08 0e 24 73 74 72 65 61 6d 44 65 6c
    65 74 65 64 00 00 00 00 00 00 00 00 68 00 00 00`);
}

/** The commit at 2000 of the transaction at 1500, first event 7. */
export function exampleCommit(): Uint8Array {
  return bytesOf(`
    3a 00 00 00 01 01 d0 07 00 00 00 00 00 00 dc 05
    00 00 00 00 00 00 07 00 00 00 00 00 00 00 d0 07
    00 00 00 00 00 00 0d 0c 0b 0a 0f 0e 11 10 12 13
    14 15 16 17 18 19 14 58 27 7b 3f 0b dc 08 3a 00
    00 00`);
}

/** Data of the first epoch of a fresh directory. */
export function exampleEpochJson(): string {
  return `{
  "epochId": "6f9619ff-8b86-d011-b42d-00c04fc964ff",
  "prevEpochPosition": -1,
  "timeStamp": "2024-01-02T03:04:05.6789012Z",
  "leaderInstanceId": "0a0b0c0d-0e0f-1011-1213-141516171819"
}`;
}
