import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { StoredEvent } from '../../../core/streams/api.ts';
import { TOMBSTONE } from '../../../core/log/format/records.ts';
import { decodeText, encodeText } from '../../../core/base/text.ts';
import { timestampText } from '../../../core/base/time.ts';

import { JsonBytes, written } from '../../../handlers/http/json-bytes.ts';
import { isOnePiece, writeLine, writeLinePieces } from '../../../handlers/streams/atom-feed.ts';
import { numberText } from '../../../handlers/http/url.ts';
import { bySize } from '../../support/run-size.ts';

/** The line as the platform writes it, from an object of the same members. */
function reference(event: StoredEvent): string {
  const place = event.link ?? event;
  const text = (bytes: Uint8Array): string => decodeText(bytes);
  const line = JSON.stringify({
    eventId: event.id,
    eventType: event.type,
    eventNumber: event.number,
    data: event.isJson ? text(event.data) : null,
    metaData: event.metadata.length === 0 ? null : text(event.metadata),
    linkMetaData: event.link === null ? null : text(event.link.metadata),
    streamId: event.stream,
    isJson: event.isJson,
    isMetaData: event.metadata.length > 0,
    isLinkMetaData: (event.link?.metadata.length ?? 0) > 0,
    isRedacted: event.isRedacted,
    positionEventNumber: place.number,
    positionStreamId: place.stream,
    updated: timestampText(place.createdMs, place.createdTicks),
    position: `${place.position}/${place.preparePosition}`,
    ...(event.link !== null && {
      eventUpdated: timestampText(event.createdMs, event.createdTicks),
      eventPosition: `${event.position}/${event.preparePosition}`,
    }),
    ...(!event.isJson && !event.isRedacted && event.data.length > 0 && { dataBase64: base64(event.data) }),
    ...(!event.isRedacted &&
      event.metadata.length > 0 &&
      !/^[{["\d\-tfn \n\r\t]/.test(String.fromCharCode(event.metadata[0]!)) && {
        metaDataBase64: base64(event.metadata),
      }),
  });
  return line
    .replace(/[\u0085\u2028\u2029]/g, (c) => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'))
    .replaceAll(`umber":${TOMBSTONE}`, `umber":${numberText(TOMBSTONE)}`);
}

const base64 = (each: Uint8Array) => Buffer.from(each).toString('base64');

const odd = fc.string({
  unit: fc.oneof(
    fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
    fc.constantFrom(
      '"',
      '\\',
      '\n',
      '\b',
      '\0',
      '\x7f',
      '\x80',
      '\u0085',
      '\u2028',
      '\u2029',
      '\ufeff',
      '\ud800',
      '\udc00',
      'é',
      '€',
      '🐦',
    ),
  ),
  maxLength: 40,
});
const json = fc.json().map(encodeText);
const bytes = fc.oneof(
  json,
  odd.map(encodeText),
  fc.uint8Array({ maxLength: 80 }),
  fc.constant(new Uint8Array(0)),
  fc.constantFrom(1_023, 40_000, 70_000).map((length) => encodeText('é"a€'.repeat(length / 4))),
);
const number = fc.oneof(
  fc.nat(),
  fc.maxSafeInteger(),
  fc.constantFrom(0, 9, 10, 999_999_999, 1_000_000_000, 9_999_999_999, 1e15, TOMBSTONE, -1),
);
const members = {
  stream: odd,
  number: number.map((n) => Math.abs(n)),
  type: odd,
  id: fc.uuid(),
  isJson: fc.boolean(),
  isRedacted: fc.boolean(),
  data: bytes,
  metadata: bytes,
  position: number,
  preparePosition: number,
  createdMs: fc.oneof(
    fc.integer({ min: -1e12, max: 4e12 }),
    fc.integer({ min: 0, max: 4e9 }).map((seconds) => seconds * 1_000),
  ),
  createdTicks: fc.oneof(fc.integer({ min: 0, max: 9_999 }), fc.constantFrom(0, 10, 100, 1_000)),
  linkTargetMissing: fc.constant(false),
};
const event: fc.Arbitrary<StoredEvent> = fc.record({
  ...members,
  link: fc.option(fc.record({ ...members, link: fc.constant(null) })),
});

test('a line is what the platform makes of the same members, whole and in pieces', () => {
  const out = new JsonBytes();
  fc.assert(
    fc.property(event, (each) => {
      const expected = reference(each);
      expect(decodeText(written((line) => writeLine(line, each)))).toBe(expected);
      let text = '';
      for (const pieces = writeLinePieces(out, each); pieces.next().done !== true;) text += decodeText(out.take());
      text += decodeText(out.take());
      if (isOnePiece(each)) expect(text).toBe(expected);
      else expect(text === expected).toBe(true);
    }),
    { seed: 5, numRuns: bySize(300, 3_000) },
  );
});

test('every byte of data is what the platform makes of it', () => {
  for (let byte = 0; byte < 256; byte++) {
    const data = Uint8Array.of(65, byte, 66);
    expect(decodeText(written((out) => out.string(data)))).toBe(JSON.stringify(decodeText(data)));
  }
});

test('what is written beyond the room is kept', () => {
  const long = 'é'.repeat(100_000);
  const bytesOf = written((out) => {
    out.text('a');
    out.text(long);
    out.string(encodeText('"'.repeat(200_000)));
    out.raw(encodeText(long));
  });
  expect(decodeText(bytesOf) === `a${long}${JSON.stringify('"'.repeat(200_000))}${long}`).toBe(true);
});
