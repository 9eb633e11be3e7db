import { describe, expect, it } from 'vitest';
import { appendedFrame } from '../../../../handlers/grpc/streams/appended.ts';
import { writeAppendResp } from '../../../../handlers/grpc/messages/streams.ts';
import { frame } from '../../../../handlers/grpc/messages/wire.ts';

const NUMBERS = [
  0,
  1,
  127,
  128,
  16_383,
  16_384,
  2 ** 28 - 1,
  2 ** 28,
  2 ** 31,
  2 ** 35 + 1,
  Number.MAX_SAFE_INTEGER - 2,
];

describe('the answer to an append, written by hand', () => {
  it.each(NUMBERS)('is what the generated writer makes of %d', (number) => {
    const at = { commitPosition: number, preparePosition: number };
    for (const revision of NUMBERS)
      expect([...appendedFrame(revision, number)]).toEqual([
        ...frame({ success: { currentRevision: revision, position: at } }, writeAppendResp),
      ]);
    expect([...appendedFrame(-1, number)]).toEqual([
      ...frame({ success: { noStream: {}, position: at } }, writeAppendResp),
    ]);
  });

  it('stays as it was when others are written behind it', () => {
    const first = appendedFrame(7, 9);
    const before = [...first];
    for (let i = 0; i < 1_000; i++) appendedFrame(i, 2 ** 40);
    expect([...first]).toEqual(before);
  });
});
