import { describe, expect, it } from 'vitest';
import { TOMBSTONE } from '../../../../core/log/format/records.ts';
import type { StoredEvent } from '../../../../core/streams/api.ts';
import { encodeText } from '../../../../core/base/text.ts';
import { eventBlock } from '../../../../handlers/grpc/events/event-block.ts';
import { writeReadResp as writePersistent } from '../../../../handlers/grpc/messages/persistent-subscriptions.ts';
import { writeReadResp } from '../../../../handlers/grpc/messages/streams.ts';
import { ALL_ONES, frame } from '../../../../handlers/grpc/messages/wire.ts';
import { Random } from '../../../support/random.ts';

/** The same events by way of the generated messages. */
function slow(
  events: readonly StoredEvent[],
  isStructured: boolean,
  resolvesLinks: boolean,
  retryCounts: readonly number[] | null,
): Uint8Array {
  const recorded = (event: StoredEvent) => ({
    id: { text: event.id, isStructured },
    streamIdentifier: { streamName: encodeText(event.stream) },
    streamRevision: event.number,
    preparePosition: event.preparePosition,
    commitPosition: event.position,
    metadata: new Map([
      ['type', event.type],
      ['created', String(BigInt(event.createdMs) * 10_000n + BigInt(event.createdTicks))],
      ['content-type', event.isJson ? 'application/json' : 'application/octet-stream'],
    ]),
    customMetadata: event.metadata,
    data: event.data,
  });
  const parts = events.map((event, i) => {
    const isLink =
      event.link !== null || (resolvesLinks && event.type === '$>' && /^\d+@/.test(Buffer.from(event.data).toString()));
    const link = isLink ? (event.link ?? event) : null;
    const { position } = link ?? event;
    const content = {
      event: link === event ? undefined : recorded(event),
      link: link === null ? undefined : recorded(link),
      ...(position === ALL_ONES ? { noPosition: {} } : { commitPosition: position }),
    };
    return retryCounts === null
      ? frame({ event: content }, writeReadResp)
      : frame({ event: { ...content, retryCount: retryCounts[i]! } }, writePersistent);
  });
  return Buffer.concat(parts);
}

const bytes = (random: Random, max: number): Uint8Array =>
  Uint8Array.from({ length: random.chance(0.2) ? 0 : random.int(0, max) }, () => random.int(0, 255));
const NUMBERS = [
  0,
  1,
  127,
  128,
  16_383,
  16_384,
  2_097_151,
  2 ** 28 - 1,
  2 ** 28,
  2 ** 31,
  2 ** 32,
  2 ** 35,
  2 ** 49 - 1,
  2 ** 49,
  TOMBSTONE - 1,
];
const TIMES = [
  0, -1, -9_999, 1, 999_999_999_999, 1_000_000_000_000, 1_790_000_123_456, 9_999_999_999_999, 10_000_000_000_000,
  -62_135_596_800_000,
];
const TEXTS = [
  'a',
  'order-1',
  'héhé-日本語-🎉',
  '$>',
  '$metadata',
  'n'.repeat(127),
  'n'.repeat(128),
  'long'.repeat(300),
];

function eventOf(random: Random): StoredEvent {
  const hex = (length: number): string => Array.from({ length }, () => random.pick([...'0123456789abcdef'])).join('');
  const half = (zeros: number): string =>
    random.chance(zeros) ? '0'.repeat(16) : random.chance(0.2) ? `${'0'.repeat(12)}${hex(4)}` : hex(16);
  const id = half(0.2) + half(0.2);
  return {
    stream: random.pick(TEXTS),
    number: random.pick([...NUMBERS, TOMBSTONE]),
    type: random.pick(['', ...TEXTS]),
    id: [id.slice(0, 8), id.slice(8, 12), id.slice(12, 16), id.slice(16, 20), id.slice(20)].join('-'),
    isJson: random.chance(0.5),
    isRedacted: false,
    data: random.chance(0.2) ? encodeText('3@s') : bytes(random, 300),
    metadata: bytes(random, 40),
    position: random.pick([...NUMBERS, ALL_ONES]),
    preparePosition: random.pick(NUMBERS),
    createdMs: random.pick([...TIMES, random.int(1_700_000_000_000, 1_900_000_000_000)]),
    createdTicks: random.pick([0, 1, 70, 9_999]),
    link: null,
    linkTargetMissing: false,
  };
}

describe('a block of events', () => {
  it.each([1, 2, 3, 4, 5, 6])('has the bytes of the generated messages, seed %i', (seed) => {
    const random = new Random(seed);
    for (let round = 0; round < 40; round++) {
      const events = Array.from({ length: random.int(0, 6) }, () => eventOf(random));
      for (const event of events) if (random.chance(0.3)) event.link = eventOf(random);
      const [isStructured, resolvesLinks] = [random.chance(0.5), random.chance(0.5)];
      const counts = random.chance(0.3) ? events.map(() => random.int(0, 300)) : null;
      // What stands in the memory already shows nowhere.
      const block = eventBlock(events, { isStructured, resolvesLinks }, counts, (count) =>
        new Uint8Array(count).fill(random.int(1, 255)),
      );
      expect(Buffer.compare(block, slow(events, isStructured, resolvesLinks, counts))).toBe(0);
    }
  });

  it('keeps no more names than it may, and finds each', () => {
    const random = new Random(9);
    const event = eventOf(random);
    for (let i = 0; i < 3_000; i++) {
      const events = [
        { ...event, stream: `s${i}`, type: `t${i % 1_500}` },
        { ...event, stream: `s${random.int(0, i)}` },
      ];
      expect(
        Buffer.compare(
          eventBlock(events, { isStructured: false, resolvesLinks: false }),
          slow(events, false, false, null),
        ),
      ).toBe(0);
    }
  });
});
