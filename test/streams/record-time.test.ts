import { describe, expect, it } from 'vitest';
import type { ObjectInstance } from '../../core/shared-log/api.ts';
import { openObjectStore } from '../../core/shared-log/shared-log.ts';
import { type Log, silentLog } from '../../core/ports/log.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import { type Meter, silentMeter } from '../../core/ports/meter.ts';
import { Lookup } from '../../core/streams/lookup/lookup.ts';
import { RecordTime } from '../../core/streams/record-time.ts';
import { createEventStore, type EventStoreInternals } from '../../core/streams/streams.ts';
import { SMALL, worldOf } from '../shared-log/setup.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { MemoryLog, Misses, NaiveIndex } from './doubles.ts';
import { event, events } from './setup.ts';

const T0 = 1_700_000_000_000;
const MINUTE = 60_000;

/** A store whose warnings and counts of steps are kept. */
class Rig {
  readonly log: MemoryLog;
  readonly index: NaiveIndex;
  readonly clock: ManualClock;
  readonly store: EventStoreInternals;
  readonly warnings: string[] = [];
  steps = 0;

  constructor(from?: Rig) {
    this.log = from?.log ?? new MemoryLog(undefined, new Misses(3, 0.5));
    this.index = from?.index ?? new NaiveIndex(undefined, new Misses(4, 0.2));
    this.clock = from?.clock ?? new ManualClock(T0);
    const log: Log = {
      ...silentLog,
      warn: (message) => {
        this.warnings.push(message);
      },
    };
    const meter: Meter = {
      ...silentMeter,
      count: (name, by = 1) => {
        if (name === 'eventstore_clock_steps_back_total') this.steps += by;
      },
    };
    this.store = createEventStore({
      reader: this.log,
      commitLog: this.log.writer,
      index: this.index,
      clock: this.clock,
      ids: new SeededIds(5),
      log,
      meter,
    });
  }

  /** Appends an event when the clock says `ms`, and gives its time. */
  async at(ms: number): Promise<[number, number]> {
    this.clock.setNow(ms);
    const { lastEventNumber } = await this.store.append('s', -2, [event()]);
    return timeOf(this.store, lastEventNumber);
  }
}

async function timeOf(store: EventStoreInternals, number: number): Promise<[number, number]> {
  const { createdMs, createdTicks } = await store.readEvent('s', number);
  return [createdMs, createdTicks];
}

describe('A clock that steps back', () => {
  it('by up to five minutes leaves records the time of the last one, until it has caught up', async () => {
    const rig = new Rig();
    expect(await rig.at(T0 + 0.5)).toEqual([T0, 5_000]);
    expect(await rig.at(T0 - MINUTE)).toEqual([T0, 5_000]);
    expect(await rig.at(T0 - 5 * MINUTE + 0.5)).toEqual([T0, 5_000]);
    expect(await rig.at(T0 + 0.25)).toEqual([T0, 5_000]);
    expect(await rig.at(T0 + 0.75)).toEqual([T0, 7_500]);
    expect(await rig.at(T0 + MINUTE)).toEqual([T0 + MINUTE, 0]);
    expect([rig.warnings, rig.steps]).toEqual([[], 0]);
  });

  it('within a millisecond does so too: the records of a group differ in ticks', async () => {
    const rig = new Rig();
    await rig.store.append('s', -1, events(50));
    expect(await timeOf(rig.store, 49)).toEqual([T0, 49]);
    expect(await rig.at(T0)).toEqual([T0, 49]);
    await rig.store.append('s', 50, events(20_000));
    expect(await timeOf(rig.store, 20_050)).toEqual([T0, 9_999]);
    expect(await rig.at(T0)).toEqual([T0, 9_999]);
  });

  it('is noticed after a restart, whatever the last record is', async () => {
    const first = new Rig();
    await first.at(T0);
    const second = new Rig(first);
    second.clock.setNow(T0 - MINUTE);
    await second.store.writeEpoch({
      epochNumber: 0,
      prevEpochPosition: -1,
      leaderInstanceId: '00000000-0000-4000-8000-000000000001',
    });
    expect((await second.store.readEvent('$epoch-information', 0)).createdMs).toBe(T0);
    expect((await new Rig(second).at(T0 - 2 * MINUTE))[0]).toBe(T0);
  });

  it('by more is believed, with one warning and one count a step', async () => {
    const rig = new Rig();
    await rig.at(T0 + 5 * MINUTE + 1);
    expect(await rig.at(T0)).toEqual([T0, 0]);
    expect(await rig.at(T0 + 1)).toEqual([T0 + 1, 0]);
    expect(await rig.at(T0 - MINUTE)).toEqual([T0 + 1, 0]);
    expect([rig.warnings.length, rig.steps]).toEqual([1, 1]);
    expect(rig.warnings[0]).toContain('300 s');
    const again = new Rig(rig);
    expect(await again.at(T0 - 24 * 60 * MINUTE)).toEqual([T0 - 24 * 60 * MINUTE, 0]);
    expect([again.warnings.length, again.steps]).toEqual([1, 1]);
  });

  it('is told once a step also while writes are refused, and once a minute at most', async () => {
    const rig = new Rig();
    await rig.at(T0);
    rig.clock.setNow(T0 - 10 * MINUTE);
    for (let i = 0; i < 3; i++)
      await expect(rig.store.append('s', 77, [event()])).rejects.toMatchObject({ code: 'wrong_expected_version' });
    expect([rig.warnings.length, rig.steps]).toEqual([1, 1]);
    for (let i = 1; i < 5; i++) {
      await rig.at(T0);
      await rig.at(T0 - 10 * MINUTE);
    }
    expect([rig.warnings.length, rig.steps]).toEqual([1, 5]);
    await rig.at(T0);
    await rig.clock.advance(MINUTE);
    await rig.at(T0 - 10 * MINUTE);
    expect([rig.warnings.length, rig.steps]).toEqual([2, 6]);
  });
});

describe('The time of decisions', () => {
  it('goes by nothing that is known of a log which is another one now', async () => {
    const { index, clock, log } = new Rig();
    const times = new RecordTime(new Lookup(log, index), { clock, log: silentLog, meter: silentMeter });
    times.note(T0 + MINUTE, 0);
    times.notePoint(T0 + 60 * MINUTE);
    expect(times.latestMs).toBe(T0 + 60 * MINUTE);
    times.forget();
    expect(times.isLatestKnown).toBe(false);
    await times.readyForLatest();
    expect(times.latestMs).toBe(T0);
  });
});

describe('Clocks of several writers of a log on object storage', () => {
  async function twoWriters(): Promise<{
    objects: MemoryObjects;
    clocks: [ManualClock, ManualClock];
    open(seed: number, clock: ManualClock): Promise<ObjectInstance>;
  }> {
    const objects = new MemoryObjects();
    return {
      objects,
      clocks: [new ManualClock(T0), new ManualClock(T0 - MINUTE)],
      open: (seed, clock) => openObjectStore(worldOf(objects, { clock, seed }), SMALL),
    };
  }

  it('give each record at least the time of the one before it', async () => {
    const { clocks, open } = await twoWriters();
    const [ahead, behind] = [await open(1, clocks[0]), await open(2, clocks[1])];
    await ahead.store.append('s', -2, [event()]);
    // It loses the number first, and is placed anew behind what it has found.
    await behind.store.append('s', -2, [event()]);
    await behind.store.append('s', -2, [event()]);
    expect(await Promise.all([0, 1, 2].map((number) => timeOf(behind.internals, number)))).toEqual([
      [T0, 0],
      [T0, 0],
      [T0, 0],
    ]);
    // One that was opened later finds the last record in the log.
    const late = await open(3, new ManualClock(T0 - 2 * MINUTE));
    await late.store.append('s', -2, [event()]);
    expect(await timeOf(late.internals, 3)).toEqual([T0, 0]);
  });

  it('are of no use for an event that a scavenge may have removed, whoever wrote its point', async () => {
    const { clocks, open } = await twoWriters();
    const [ahead, behind] = [await open(1, clocks[0]), await open(2, clocks[1])];
    const condition = { failIfEventsMatch: { items: [{ types: ['made'] }] } };
    const decide = (): Promise<unknown> =>
      behind.store.appendToStreams([{ stream: 't', expectedVersion: -2, events: [event()] }], { condition });
    await behind.store.append('$$s', -2, [event('{"$maxAge":10}', { type: '$metadata', isJson: true })]);
    await behind.store.append('s', -2, [event('', { type: 'made' })]);
    await expect(decide()).rejects.toMatchObject({ code: 'condition_failed' });
    clocks[0].setNow(T0 + 60 * MINUTE);
    await ahead.store.append('$scavengePoints', -2, [event()]);
    clocks[0].setNow(T0 - MINUTE);
    await ahead.store.append('t', -2, [event()]);
    await decide();
  });
});
