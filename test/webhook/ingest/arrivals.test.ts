import { describe, expect, test } from 'vitest';
import { ARRIVAL_LIMITS, Arrivals } from '../../../core/webhook/arrivals/arrivals.ts';
import type { Arrival, ArrivalLimits, Dropped } from '../../../core/webhook/arrivals/arrivals.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { Random } from '../../support/random.ts';

function open(limits: Partial<ArrivalLimits> = {}) {
  const clock = new ManualClock();
  const arrivals = new Arrivals(clock, { ...ARRIVAL_LIMITS, ...limits });
  /** A body, and what became of it. */
  const begin = (address: string | null = '192.0.2.1', connector = 'parcels') => {
    const dropped: Dropped[] = [];
    const arrival = arrivals.begin(connector, address, (why) => {
      dropped.push(why);
    });
    return { ...arrival, dropped };
  };
  return { clock, arrivals, begin };
}

describe('who goes first', () => {
  test('is the one who lags most behind a brisk sender, not the one who came last', async () => {
    const { clock, begin } = open({ arrivingMax: 3 });
    const silent = begin();
    await clock.advance(1_500);
    const dripping = begin();
    await clock.advance(4_000);
    dripping.arrived(10);
    const brisk = begin();
    brisk.arrived(100_000);
    const last = begin();
    expect([silent, dripping, brisk, last].map(({ dropped }) => dropped)).toEqual([['slow'], [], [], []]);
    begin();
    expect(dripping.dropped).toEqual(['slow']);
    expect(dripping.arrived(1)).toBe(false);
  });

  test('is the newcomer where everybody else is faster', () => {
    const { arrivals, begin } = open({ arrivingMax: 1 });
    const brisk = begin();
    brisk.arrived(1_000);
    expect(begin().dropped).toEqual(['busy']);
    expect([brisk.dropped, arrivals.size, arrivals.bytes]).toEqual([[], 1, 1_000]);
  });

  test('is nobody who holds no bytes, where bytes are what is short', async () => {
    const { clock, arrivals, begin } = open({ arrivingBytesMax: 1_000 });
    const silent = begin();
    const holding = begin();
    holding.arrived(800);
    await clock.advance(3_000);
    const genuine = begin();
    expect(genuine.arrived(900)).toBe(true);
    expect([silent.dropped, holding.dropped]).toEqual([[], ['slow']]);
    expect([arrivals.size, arrivals.bytes]).toEqual([2, 900]);
  });

  test('is of an IPv6 network as of one address', () => {
    const { begin } = open({ addressArrivingMax: 1 });
    const first = begin('2001:db8::1');
    begin('2001:db8::ffff:2');
    expect(first.dropped).toEqual(['busy']);
  });

  test('is of the address, or the connector, that has too much', () => {
    const { begin } = open({ addressArrivingMax: 1, connectorArrivingBytesMax: 100 });
    const other = begin('192.0.2.9', 'letters');
    const first = begin();
    begin();
    expect([first.dropped, other.dropped]).toEqual([['busy'], []]);
    other.arrived(90);
    const more = begin('192.0.2.8', 'letters');
    more.arrived(90);
    expect(other.dropped.length + more.dropped.length).toBe(1);
  });
});

test('limits hold whatever comes, and nothing is left behind', async () => {
  const limits: ArrivalLimits = {
    arrivingBytesMax: 5_000,
    connectorArrivingBytesMax: 3_000,
    addressArrivingBytesMax: 2_000,
    arrivingMax: 20,
    connectorArrivingMax: 12,
    addressArrivingMax: 6,
  };
  const { clock, arrivals, begin } = open(limits);
  const random = new Random(17);
  const alive = new Map<Arrival, { readonly dropped: Dropped[]; bytes: number }>();
  for (let i = 0; i < 3_000; i++) {
    const step = random.int(0, 9);
    if (step < 4) {
      const body = begin(
        random.chance(0.1) ? null : `192.0.2.${random.int(1, 5)}`,
        random.pick(['parcels', 'letters', 'till']),
      );
      alive.set(body, { dropped: body.dropped, bytes: 0 });
    } else if (step < 8 && alive.size > 0) {
      const [body, known] = random.pick([...alive]);
      const bytes = random.int(1, 700);
      if (body.arrived(bytes)) known.bytes += bytes;
    } else if (step === 8) await clock.advance(random.int(1, 500));
    else if (alive.size > 0) {
      const [body] = random.pick([...alive]);
      body.end();
      alive.delete(body);
    }
    for (const [body, { dropped }] of alive) if (dropped.length > 0) alive.delete(body);
    expect(arrivals.size).toBe(alive.size);
    expect(arrivals.bytes).toBe([...alive.values()].reduce((sum, { bytes }) => sum + bytes, 0));
    expect(arrivals.size).toBeLessThanOrEqual(limits.arrivingMax);
    expect(arrivals.bytes).toBeLessThanOrEqual(limits.arrivingBytesMax);
  }
  for (const body of alive.keys()) body.end();
  expect([arrivals.size, arrivals.bytes]).toEqual([0, 0]);
});
