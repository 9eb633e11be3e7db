import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { encodeText } from '../../core/base/text.ts';
import {
  emptied,
  isEmptied,
  isRedactable,
  isRedacted,
  isSameRecord,
  keptMetadata,
  redacted,
} from '../../core/log/format/redaction.ts';
import {
  encodePrepare,
  FLAG_COMMITTED,
  FLAG_DATA,
  FLAG_JSON,
  FLAG_STREAM_DELETE,
  FRAME_BYTES,
  parsePrepare,
  prepareFrameBytes,
  PrepareFields,
  RecordFrame,
} from '../../core/log/format/records.ts';

/** Any two copies of an event, of which scavenges have left what they leave at whatever time, are of the same event. */

const KEYS = ['$a', '$b', '$c'];
const STREAM = encodeText('orders');
const TYPE = encodeText('paid');

const WHOLE = FLAG_DATA | 6 | FLAG_COMMITTED | FLAG_JSON;

function framed(data: Uint8Array, metadata: Uint8Array, flags = WHOLE, stream = STREAM): Uint8Array {
  const out = new Uint8Array(prepareFrameBytes(stream.length, TYPE.length, data.length, metadata.length));
  encodePrepare(out, 0, {
    position: 77,
    flags,
    transactionPosition: 77,
    transactionOffset: 0,
    expectedVersion: 2,
    stream,
    eventId: new Uint8Array(16).fill(7),
    correlationId: new Uint8Array(16),
    timestampMs: 1_790_000_000_000,
    timestampTicks: 0,
    eventType: TYPE,
    data,
    metadata,
  });
  return out;
}

function parsed(bytes: Uint8Array): readonly [RecordFrame, PrepareFields] {
  const frame = new RecordFrame();
  const fields = new PrepareFields();
  frame.bytes = bytes;
  frame.at = FRAME_BYTES / 2;
  frame.length = bytes.length - FRAME_BYTES;
  frame.position = 77;
  parsePrepare(frame, fields);
  return [frame, fields];
}

/** What a run leaves of the record, as it is where there is nothing to lose. */
const marked = (bytes: Uint8Array, dropped: readonly string[]): Uint8Array =>
  redacted(...parsed(bytes), dropped) ?? bytes;
const metadataOf = (bytes: Uint8Array): Uint8Array => {
  const [, { metadataAt, metadataLength }] = parsed(bytes);
  return bytes.slice(metadataAt, metadataAt + metadataLength);
};

const piece = fc.constantFrom('$a', '$b', '"', '{', '}', ':', ',', '1', ' ', '\\u0024c', '[', ']', 'x');
const member = fc
  .tuple(fc.constantFrom('$a', '$b', '$c', '\\u0024a', 'who', '$\\ud800', '__proto__'), fc.json({ maxDepth: 1 }))
  .map(([key, value]) => `"${key}":${value}`);
const metadata = fc.oneof(
  fc.array(member, { maxLength: 5 }).map((members) => encodeText(`{ ${members.join(' , ')} }`)),
  fc.array(piece, { maxLength: 12 }).map((pieces) => encodeText(pieces.join(''))),
  // A byte that is no UTF-8, in a string.
  fc
    .tuple(fc.array(member, { minLength: 1, maxLength: 3 }), fc.array(fc.constantFrom(0xff, 0xc3, 0x80, 0x41)))
    .map(([members, bytes]) =>
      Uint8Array.from([...encodeText(`{${members.join(',')},"$c":"`), ...bytes, ...encodeText('"}')]),
    ),
);

test('the forms that a scavenge leaves depend on record and marks alone, and are known for rests of the event', () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 6 }),
      metadata,
      fc.subarray(KEYS),
      fc.subarray(KEYS),
      (data, meta, first, second) => {
        const whole = framed(data, meta);
        const one = marked(whole, first);
        const both = [...new Set([...first, ...second])];
        const two = marked(one, both);
        expect(two).toEqual(marked(whole, both));
        expect(marked(two, both)).toBe(two);
        expect(metadataOf(two)).toEqual(two === whole ? meta : keptMetadata(meta, both));
        const empty = emptied(...parsed(whole));
        expect(emptied(...parsed(two))).toEqual(empty);
        // Reads pass over it, and a mark does not bring it back.
        expect(marked(empty, both)).toBe(empty);
        if (two !== whole) expect([isRedacted(...parsed(two)), isEmptied(...parsed(two))]).toEqual([true, false]);
        const forms = [whole, one, two, empty];
        for (const a of forms) for (const b of forms) expect(isSameRecord(a, 0, b, 0, whole.length)).toBe(true);
      },
    ),
    { seed: 43, numRuns: 1_500 },
  );
});

test.each([
  ['a whole event', WHOLE, 'orders', true],
  ['an event of a stream of the store', WHOLE, '$own', false],
  ['metadata of a stream', WHOLE, '$$orders', false],
  ['a part of an explicit transaction', WHOLE & ~FLAG_COMMITTED, 'orders', false],
  ['a tombstone', (WHOLE & ~FLAG_DATA) | FLAG_STREAM_DELETE, 'orders', false],
])('a mark has an effect on a whole event alone: %s', (_, flags, stream, expected) => {
  const record = framed(encodeText('{"a":1}'), encodeText(''), flags, encodeText(stream));
  expect(isRedactable(...parsed(record))).toBe(expected);
});
