import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import type { Explanation } from '../../core/scavenge/api.ts';
import type { DirectoryStore } from '../../core/store/store.ts';
import { ANY, type EventStore } from '../../core/streams/api.ts';
import { encodeText } from '../../core/base/text.ts';
import { bySize } from '../support/run-size.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { openTestStore, TEST_NOW_MS } from '../support/test-store.ts';

/**
 * Random histories in which the clock is also set back by hours. What readers see, what explain promises and what a
 * scavenge leaves are compared with a list of events, each of which is judged by its own number and its own time.
 */

const HOUR_MS = 3_600_000;
const STREAMS = ['one', 'two', 'three'] as const;
const NO_BYTES = new Uint8Array(0);

type Step =
  | { readonly do: 'append'; readonly stream: number; readonly count: number; readonly bytes: number }
  | {
      readonly do: 'limit';
      readonly stream: number;
      readonly maxAgeHours: number | null;
      readonly maxCount: number | null;
      readonly truncateBefore: number | null;
    }
  | { readonly do: 'step'; readonly hours: number }
  | { readonly do: 'scavenge' };

const stream = fc.integer({ min: 0, max: STREAMS.length - 1 });
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 10,
    arbitrary: fc.record({
      do: fc.constant('append' as const),
      stream,
      count: fc.integer({ min: 1, max: 12 }),
      bytes: fc.constantFrom(10, 500, 4_000),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('limit' as const),
      stream,
      maxAgeHours: fc.option(fc.integer({ min: 1, max: 30 }), { freq: 5 }),
      maxCount: fc.option(fc.integer({ min: 1, max: 25 }), { freq: 2 }),
      truncateBefore: fc.option(fc.integer({ min: 0, max: 12 }), { freq: 2 }),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('step' as const),
      hours: fc.integer({ min: -24, max: 24 }).filter((hours) => hours !== 0),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ do: 'scavenge' as const }) },
);
const history = fc.array(step, { minLength: 15, maxLength: 50, size: 'max' });

interface Event {
  readonly number: number;
  readonly createdMs: number;
}
interface Limits {
  readonly maxAgeMs: number;
  readonly maxCount: number;
  readonly truncateBefore: number;
}
const NO_LIMITS: Limits = { maxAgeMs: Infinity, maxCount: Infinity, truncateBefore: 0 };

/** Whether an event is seen at a time, by its own number and time. */
function isAlive(event: Event, limits: Limits, last: number, nowMs: number): boolean {
  return (
    event.number >= limits.truncateBefore &&
    event.number > last - limits.maxCount &&
    event.createdMs >= nowMs - limits.maxAgeMs
  );
}

class History {
  readonly #clock = new ManualClock(TEST_NOW_MS, 'microtask');
  readonly #ids = new SeededIds(9);
  readonly #storage = new MemoryStorage();
  /** By stream: the events that must be there, as far as anyone knows, and its limits. */
  readonly #events = new Map<string, Event[]>(STREAMS.map((name) => [name, []]));
  readonly #limits = new Map<string, Limits>(STREAMS.map((name) => [name, NO_LIMITS]));
  #open!: DirectoryStore;
  #texts = 0;

  async play(steps: readonly Step[]): Promise<void> {
    this.#open = await openTestStore({
      storage: this.#storage,
      clock: this.#clock,
      ids: this.#ids,
      chunkSizeBytes: 65_536,
      memTableEntriesMax: 20,
      cacheBytes: 1_048_576,
      scavenge: { disableMerging: true },
    });
    try {
      for (const one of steps) await this.#take(one);
      await this.#scavenge();
    } finally {
      await this.#open.close();
    }
  }

  get #store(): EventStore {
    return this.#open.store;
  }

  async #take(one: Step): Promise<void> {
    if (one.do === 'append') {
      const name = STREAMS[one.stream]!;
      const data = new Uint8Array(one.bytes);
      const { firstEventNumber } = await this.#store.append(
        name,
        ANY,
        Array.from({ length: one.count }, () => ({
          id: this.#newId(),
          type: 'happened',
          isJson: false,
          data,
          metadata: NO_BYTES,
        })),
      );
      for (let i = 0; i < one.count; i++)
        this.#events.get(name)!.push({ number: firstEventNumber + i, createdMs: this.#clock.nowMs() });
    } else if (one.do === 'limit') await this.#limit(one);
    else if (one.do === 'step') this.#clock.setNow(this.#clock.nowMs() + one.hours * HOUR_MS);
    else await this.#scavenge();
  }

  async #limit({ stream: index, maxAgeHours, maxCount, truncateBefore }: Step & { do: 'limit' }): Promise<void> {
    const name = STREAMS[index]!;
    const members = {
      ...(maxAgeHours !== null && { $maxAge: maxAgeHours * 3_600 }),
      ...(maxCount !== null && { $maxCount: maxCount }),
      ...(truncateBefore !== null && { $tb: truncateBefore }),
    };
    await this.#store.append(`$$${name}`, ANY, [
      {
        id: this.#newId(),
        type: '$metadata',
        isJson: true,
        data: encodeText(JSON.stringify(members)),
        metadata: NO_BYTES,
      },
    ]);
    this.#limits.set(name, {
      maxAgeMs: maxAgeHours === null ? Infinity : maxAgeHours * HOUR_MS,
      maxCount: maxCount ?? Infinity,
      truncateBefore: truncateBefore ?? 0,
    });
  }

  /** Reads, lets explain promise, scavenges, and looks whether it was kept. */
  async #scavenge(): Promise<void> {
    await this.#checkReads('before the scavenge');
    const promised = new Map<string, Set<number>>();
    for (const name of STREAMS) promised.set(name, await this.#promise(name));
    await this.#open.scavenger.start({ threshold: -1 });
    await this.#open.scavenger.idle();
    expect(this.#open.scavenger.last()).toMatchObject({ result: 'Success' });
    const all = await this.#present();
    for (const name of STREAMS) {
      const before = this.#events.get(name)!;
      const left = before.filter(({ number }) => !promised.get(name)!.has(number));
      expect(all.get(name) ?? [], `what a scavenge leaves of ${name}`).toEqual(left.map(({ number }) => number));
      this.#events.set(name, left);
    }
    await this.#checkReads('after the scavenge');
  }

  /** The event numbers that explain says will go; by the model, those that are not alive, but for the last. */
  async #promise(name: string): Promise<Set<number>> {
    const events = this.#events.get(name)!;
    if (events.length === 0) return new Set();
    const last = events.at(-1)!.number;
    const explanation = await this.#open.scavenger.explain(name);
    const doomed = events.filter(
      (event) => event.number < last && !isAlive(event, this.#limits.get(name)!, last, this.#clock.nowMs()),
    );
    expect(countOf(explanation.removed), `explain of ${name}`).toBe(doomed.length);
    expect(countOf(explanation.kept), `explain of ${name}`).toBe(events.length - doomed.length);
    for (const { number } of doomed)
      expect(
        explanation.removed.some(({ from, to }) => from <= number && number <= to),
        `explain of ${number} in ${name}`,
      ).toBe(true);
    return new Set(doomed.map(({ number }) => number));
  }

  async #checkReads(when: string): Promise<void> {
    for (const name of STREAMS) {
      const events = this.#events.get(name)!;
      if (events.length === 0) continue;
      const alive = events
        .filter((event) => isAlive(event, this.#limits.get(name)!, events.at(-1)!.number, this.#clock.nowMs()))
        .map(({ number }) => number);
      for (const count of [3, 50]) {
        expect(await this.#paged(name, 'forward', count), `${name} forward ${when}`).toEqual(alive);
        expect(await this.#paged(name, 'backward', count), `${name} backward ${when}`).toEqual(alive.toReversed());
      }
      expect(await this.#subscribed(name), `${name} subscribed ${when}`).toEqual(alive);
      for (const { number } of events.slice(0, 5)) {
        const one = await this.#store.readEvent(name, number).then(
          () => true,
          () => false,
        );
        expect(one, `event ${number} of ${name} ${when}`).toBe(alive.includes(number));
      }
    }
  }

  async #paged(name: string, direction: 'forward' | 'backward', count: number): Promise<number[]> {
    const seen: number[] = [];
    for (let from: number | 'end' = direction === 'forward' ? 0 : 'end'; ;) {
      const page = await this.#store.readStream(name, { direction, from, count });
      seen.push(...page.events.map(({ number }) => number));
      if (page.isEnd) return seen;
      from = page.nextEventNumber;
    }
  }

  async #subscribed(name: string): Promise<number[]> {
    const seen: number[] = [];
    for await (const message of this.#store.subscribeToStream(name, { after: -1 })) {
      if (message.kind !== 'event') break;
      seen.push(message.event.number);
    }
    return seen;
  }

  /** Event numbers that are still in the log, by stream. */
  async #present(): Promise<Map<string, number[]>> {
    const found = new Map<string, number[]>();
    for (let from: Parameters<EventStore['readAll']>[0]['from'] = 'start'; ;) {
      const page = await this.#store.readAll({ direction: 'forward', from, count: 200 });
      for (const { stream: name, number } of page.events) found.set(name, [...(found.get(name) ?? []), number]);
      if (page.isEnd) return found;
      from = page.next;
    }
  }

  #newId(): string {
    return `00000000-0000-4000-8000-${String(++this.#texts).padStart(12, '0')}`;
  }
}

function countOf(ranges: Explanation['removed'] | Explanation['kept']): number {
  return ranges.reduce((sum, { count }) => sum + count, 0);
}

describe('retention where clocks are set back', () => {
  it('reads, explain and a scavenge agree with a naive model', () =>
    fc.assert(
      fc.asyncProperty(history, (steps) => new History().play(steps)),
      { seed: 301, numRuns: bySize(12, 40), endOnFailure: false },
    ));
});
