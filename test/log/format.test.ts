import { describe, expect, it } from 'vitest';
import { guidFromText, guidToText } from '../../core/base/guid.ts';
import {
  COMMIT,
  PREPARE,
  PrepareFields,
  RecordFrame,
  SYSTEM,
  TOMBSTONE,
  decodeCommit,
  decodeEpoch,
  decodePrepare,
  encodeEpoch,
  encodePrepare,
  eventNumber64,
  parsePrepare,
  prepareFrameBytes,
  putEventNumber64,
  putTimestamp,
  timestampMsAt,
  timestampTicksAt,
} from '../../core/log/format/records.ts';
import { timestampText } from '../../core/base/time.ts';
import { i32, putI32 } from '../../core/base/bytes.ts';
import {
  bytesOf,
  exampleCommit,
  examplePrepare,
  exampleTombstone,
  exampleEpochJson,
  EXAMPLE_MS,
  EXAMPLE_TICKS,
} from '../support/golden.ts';

/**
 * Golden bytes of records (core/log/FORMAT.md, "Records"): what we write is exactly this, and what we read of it is
 * exactly that.
 */

function frameOf(bytes: Uint8Array, position: number): RecordFrame {
  const frame = new RecordFrame();
  frame.bytes = bytes;
  frame.at = 4;
  frame.length = i32(bytes, 0);
  frame.position = position;
  frame.next = position + frame.length + 8;
  return frame;
}
const guid = (text: string): Uint8Array => {
  const out = new Uint8Array(16);
  expect(guidFromText(text, out, 0)).toBe(true);
  return out;
};
const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text);
const CORRELATION = '0a0b0c0d-0e0f-1011-1213-141516171819';
const EVENT_ID = '11223344-5566-7788-99aa-bbccddeeff00';

describe('GUIDs and timestamps', () => {
  it('stores the first three groups of a GUID byte-reversed', () => {
    expect(guid(EVENT_ID)).toEqual(bytesOf('44 33 22 11 66 55 88 77 99 aa bb cc dd ee ff 00'));
    expect(guidToText(guid(EVENT_ID), 0)).toBe(EVENT_ID);
  });
  it.each([
    [EXAMPLE_MS, EXAMPLE_TICKS, 638_397_614_456_789_012n],
    [-62_135_596_800_000, 0, 0n],
    [-62_135_596_800_000, 9_999, 9_999n],
    [0, 0, 621_355_968_000_000_000n],
    [253_402_300_799_999, 9_999, 3_155_378_975_999_999_999n],
  ])('%d ms and %d ticks are %d ticks', (ms, ticks, expected) => {
    const bytes = new Uint8Array(8);
    putTimestamp(bytes, 0, ms, ticks);
    expect(new DataView(bytes.buffer).getBigInt64(0, true)).toBe(expected);
    expect([timestampMsAt(bytes, 0), timestampTicksAt(bytes, 0)]).toEqual([ms, ticks]);
  });
  it('writes timestamps as ISO text with trimmed fractions', () => {
    expect(timestampText(EXAMPLE_MS, EXAMPLE_TICKS)).toBe('2024-01-02T03:04:05.6789012Z');
    expect(timestampText(1_704_164_645_600, 0)).toBe('2024-01-02T03:04:05.6Z');
    expect(timestampText(1_704_164_645_000, 0)).toBe('2024-01-02T03:04:05Z');
  });
  it.each([
    [TOMBSTONE, 2n ** 63n - 1n],
    [TOMBSTONE - 1, 2n ** 63n - 2n],
    [-1, -1n],
    [-2, -2n],
    [0, 0n],
    [4_294_967_296, 4_294_967_296n],
    [-4_294_967_297, -4_294_967_297n],
  ])('event number %d is %d on disk', (number, expected) => {
    const bytes = new Uint8Array(8);
    putEventNumber64(bytes, 0, number);
    expect(new DataView(bytes.buffer).getBigInt64(0, true)).toBe(expected);
    expect(eventNumber64(bytes, 0)).toBe(number);
  });
});

describe('prepare', () => {
  const input = {
    position: 1000,
    flags: 0x0127,
    transactionPosition: 1000,
    transactionOffset: 0,
    expectedVersion: -1,
    stream: utf8('order-42'),
    eventId: guid(EVENT_ID),
    correlationId: guid(CORRELATION),
    timestampMs: EXAMPLE_MS,
    timestampTicks: EXAMPLE_TICKS,
    eventType: utf8('OrderPlaced'),
    data: utf8('{"total":12.5}'),
    metadata: new Uint8Array(0),
  };
  it('is written as the example', () => {
    const out = new Uint8Array(200).fill(0xaa);
    expect(encodePrepare(out, 7, input)).toBe(7 + 123);
    expect(out.subarray(7, 7 + 123)).toEqual(examplePrepare());
    expect([out[6], out[130]]).toEqual([0xaa, 0xaa]);
    expect(prepareFrameBytes(8, 11, 14, 0)).toBe(123);
  });
  it('is read as the example', () => {
    const frame = frameOf(examplePrepare(), 1000);
    expect([frame.type, frame.version, frame.ownPosition]).toEqual([PREPARE, 1, 1000]);
    expect(decodePrepare(frame)).toEqual({
      version: 1,
      position: 1000,
      flags: 0x0127,
      transactionPosition: 1000,
      transactionOffset: 0,
      expectedVersion: -1,
      stream: 'order-42',
      eventId: EVENT_ID,
      correlationId: CORRELATION,
      timestampMs: EXAMPLE_MS,
      timestampTicks: EXAMPLE_TICKS,
      eventType: 'OrderPlaced',
      data: utf8('{"total":12.5}'),
      metadata: new Uint8Array(0),
    });
    const fields = new PrepareFields();
    parsePrepare(frame, fields);
    expect([fields.isCommitted, fields.isEvent, fields.eventNumber]).toEqual([true, true, 0]);
  });
  it('writes and reads the tombstone example', () => {
    const out = new Uint8Array(112);
    const tombstone = {
      ...input,
      position: 5000,
      flags: 0x002e,
      transactionPosition: 5000,
      expectedVersion: TOMBSTONE - 1,
      eventType: utf8('$streamDeleted'),
      data: new Uint8Array(0),
    };
    expect(encodePrepare(out, 0, tombstone)).toBe(112);
    expect(out).toEqual(exampleTombstone());
    const read = decodePrepare(frameOf(out, 5000));
    expect([read.expectedVersion, read.flags, read.eventType, read.data.length]).toEqual([
      TOMBSTONE - 1,
      0x002e,
      '$streamDeleted',
      0,
    ]);
    const fields = new PrepareFields();
    parsePrepare(frameOf(out, 5000), fields);
    expect(fields.eventNumber).toBe(TOMBSTONE);
  });
  it.each([
    [127, 1],
    [128, 1],
    [300, 16_384],
  ])('holds a name of %d bytes and a type of %d bytes', (nameBytes, typeBytes) => {
    const size = prepareFrameBytes(nameBytes, typeBytes, 3, 5);
    const out = new Uint8Array(size);
    const record = {
      ...input,
      stream: utf8('n'.repeat(nameBytes)),
      eventType: utf8('t'.repeat(typeBytes)),
      data: utf8('abc'),
      metadata: utf8('defgh'),
    };
    expect(encodePrepare(out, 0, record)).toBe(size);
    const read = decodePrepare(frameOf(out, 1000));
    expect([read.stream.length, read.eventType.length, read.data, read.metadata]).toEqual([
      nameBytes,
      typeBytes,
      record.data,
      record.metadata,
    ]);
  });
  it('reads version 0, whose expected version has 32 bits', () => {
    const v1 = examplePrepare();
    const shorten = (expected: number): RecordFrame => {
      const v0 = new Uint8Array(v1.length - 4);
      v0.set(v1.subarray(0, 28));
      putI32(v0, 28, expected);
      v0.set(v1.subarray(36), 32);
      v0[5] = 0;
      putI32(v0, 0, 111);
      putI32(v0, v0.length - 4, 111);
      return frameOf(v0, 1000);
    };
    expect(decodePrepare(shorten(41))).toMatchObject({
      version: 0,
      expectedVersion: 41,
      stream: 'order-42',
      eventType: 'OrderPlaced',
    });
    expect(decodePrepare(shorten(2_147_483_646)).expectedVersion).toBe(TOMBSTONE - 1);
    expect(decodePrepare(shorten(-1)).expectedVersion).toBe(-1);
  });
  it('refuses a payload whose parts do not fill it exactly', () => {
    const whole = examplePrepare();
    for (let length = 0; length < 115; length++) {
      const frame = frameOf(whole, 1000);
      frame.length = length;
      expect(() => decodePrepare(frame), `length ${length}`).toThrow(expect.objectContaining({ code: 'log_corrupt' }));
    }
    for (const [at, value] of [
      [36, 0xff],
      [36, 0],
      [85, 0xff],
      [97, 0xff],
      [100, 0x80],
      [115, 1],
      [118, 0xff],
    ] as const) {
      const damaged = examplePrepare();
      damaged[at] = value;
      expect(() => decodePrepare(frameOf(damaged, 1000)), `byte ${at}`).toThrow(
        expect.objectContaining({ code: 'log_corrupt' }),
      );
    }
  });
});

describe('commit', () => {
  it('is read as the example', () => {
    const frame = frameOf(exampleCommit(), 2000);
    expect([frame.type, frame.ownPosition]).toEqual([COMMIT, 2000]);
    expect(decodeCommit(frame)).toMatchObject({
      version: 1,
      position: 2000,
      transactionPosition: 1500,
      firstEventNumber: 7,
      correlationId: CORRELATION,
    });
  });
  it('reads version 0, whose event number has 32 bits', () => {
    const v1 = exampleCommit();
    const v0 = new Uint8Array(62);
    v0.set(v1.subarray(0, 26));
    v0.set(v1.subarray(30), 26);
    v0[5] = 0;
    putI32(v0, 0, 54);
    putI32(v0, 58, 54);
    expect(decodeCommit(frameOf(v0, 2000))).toMatchObject({
      version: 0,
      firstEventNumber: 7,
      correlationId: CORRELATION,
    });
    putI32(v0, 22, 2_147_483_647);
    expect(decodeCommit(frameOf(v0, 2000)).firstEventNumber).toBe(TOMBSTONE);
  });
  it('refuses a wrong length or version', () => {
    const frame = frameOf(exampleCommit(), 2000);
    frame.length = 57;
    expect(() => decodeCommit(frame)).toThrow(expect.objectContaining({ code: 'log_corrupt' }));
    const newer = exampleCommit();
    newer[5] = 2;
    expect(() => decodeCommit(frameOf(newer, 2000))).toThrow(expect.objectContaining({ code: 'log_corrupt' }));
  });
});

describe('epoch', () => {
  it('is written and read as the example', () => {
    const json = utf8(exampleEpochJson());
    expect(json.length).toBe(191);
    const out = new Uint8Array(231).fill(0xaa);
    expect(encodeEpoch(out, 0, 0, EXAMPLE_MS, EXAMPLE_TICKS, json)).toBe(231);
    expect(out.subarray(0, 36)).toEqual(
      bytesOf(
        'df 00 00 00 02 00 00 00 00 00 00 00 00 00 14 58 27 7b 3f 0b dc 08 01 02 00 00 00 00 00 00 00 00 bf 00 00 00',
      ),
    );
    expect(out.subarray(36, 227)).toEqual(json);
    expect(out.subarray(227)).toEqual(bytesOf('df 00 00 00'));
    const frame = frameOf(out, 0);
    expect(frame.type).toBe(SYSTEM);
    expect(decodeEpoch(frame)).toEqual({ position: 0, json });
  });
  it('is followed by a prepare of 317 bytes', () => {
    const name = '$epoch-information'.length;
    expect(prepareFrameBytes(name, name, 191, 0)).toBe(317);
  });
  it('refuses what is no epoch in JSON', () => {
    for (const [at, value] of [
      [5, 1],
      [22, 0],
      [23, 1],
      [32, 0xbe],
    ] as const) {
      const out = new Uint8Array(231);
      encodeEpoch(out, 0, 0, EXAMPLE_MS, EXAMPLE_TICKS, utf8(exampleEpochJson()));
      out[at] = value;
      expect(() => decodeEpoch(frameOf(out, 0)), `byte ${at}`).toThrow(
        expect.objectContaining({ code: 'log_corrupt' }),
      );
    }
  });
});
