import { describe, expect, test } from 'vitest';
import { scavengeStatus } from '../../core/shared-log/control/control.ts';
import { commitKey } from '../../core/shared-log/format/object-keys.ts';
import { openObjectStore } from '../../core/shared-log/shared-log.ts';
import { ANY } from '../../core/streams/api.ts';
import { encodeText } from '../../core/base/text.ts';
import { CountingObjects } from '../support/counting-objects.ts';
import { FaultyObjects } from '../support/faulty-objects.ts';
import { readWholeStream } from '../support/oracle.ts';
import { AutoClock } from './auto-clock.ts';
import { erasable, idleTick, MARK, marksIn, MINUTE_MS } from './erasure-kit.ts';
import { OPTIONS } from './scavenge-kit.ts';
import { eventsOf, manifestOf, worldOf } from './tick-kit.ts';

/** The hour that objects stay, and twice what a writer may know too little of the boundary. */
const GONE_AFTER_MINUTES = 72;

describe('what a scavenge has removed', () => {
  test('is in no object any more when its time is over, though nobody writes', async () => {
    const clock = new AutoClock();
    const { objects, writer, scavengeId } = await erasable(clock);
    await writer.close();
    // What a tick has uploaded that was killed before its manifest.
    await objects.put('files/00000000-0000-4000-8000-000000000009', encodeText(MARK));
    expect(await marksIn(objects)).not.toEqual([]);
    await idleTick(objects, clock, 10);
    const endedMs = clock.nowMs();
    const after = await scavengeStatus(worldOf(objects, clock, 11));
    expect(after).toMatchObject({ scavengeId, state: 'ended', result: 'Success', traces: { goneMs: null } });
    for (let minute = 1; (clock.nowMs() - endedMs) / MINUTE_MS < GONE_AFTER_MINUTES; minute++) {
      clock.advance(MINUTE_MS);
      await idleTick(objects, clock, 100 + minute);
      const { traces } = (await scavengeStatus(worldOf(objects, clock, 12)))!;
      // What is said is true at every moment.
      if (traces!.goneMs === null) expect(traces!.untilMs).toBeGreaterThanOrEqual(clock.nowMs());
      else expect(await marksIn(objects)).toEqual([]);
    }
    expect(await marksIn(objects)).toEqual([]);
    const { traces } = (await scavengeStatus(worldOf(objects, clock, 13)))!;
    expect(traces!.goneMs).toBeGreaterThanOrEqual(endedMs + 60 * MINUTE_MS);
    const reader = await openObjectStore(worldOf(objects, clock, 14), OPTIONS);
    const history = await readWholeStream(reader.store, `$scavenges-${scavengeId}`, 'forward', 100);
    const told = 'error' in history ? [] : history;
    expect(told.map(({ type }) => type)).toContain('$scavengeTracesRemoved');
    const completed = told.find(({ type }) => type === '$scavengeCompleted')!;
    expect(JSON.parse(Buffer.from(completed.data).toString())).toMatchObject({
      tracesUntil: expect.stringMatching(/^2026-/) as string,
    });
    await reader.close();
  });

  test('does not come back in the commits that a writer makes who knew it before', async () => {
    const clock = new AutoClock();
    const { objects, writer, ids } = await erasable(clock);
    await idleTick(objects, clock, 10);
    // Its commits carry those before them, which an instance knows that was open all the time.
    await writer.store.append('kept', ANY, eventsOf(ids, 1, 10));
    for (let minute = 1; minute <= 100; minute++) {
      clock.advance(MINUTE_MS);
      if (minute % 3 === 0) await writer.store.append('kept', ANY, eventsOf(ids, 1, 10));
      await idleTick(objects, clock, 100 + minute);
    }
    expect(await marksIn(objects)).toEqual([]);
    await writer.close();
  });

  test('afterwards a tick costs as little as before, and writes nothing', async () => {
    const clock = new AutoClock();
    const { objects, writer } = await erasable(clock);
    await writer.close();
    const ended = (await idleTick(objects, clock, 100)).manifest;
    for (let minute = 1; minute <= 240; minute++) {
      await idleTick(objects, clock, 100 + minute);
      clock.advance(MINUTE_MS);
    }
    const { number, dropped } = await manifestOf(objects);
    expect(dropped).toEqual([]);
    expect(number - ended).toBeLessThanOrEqual(10);
    const counting = new CountingObjects(objects);
    expect(await idleTick(counting, clock, 999)).toMatchObject({ outcome: 'idle', manifest: number });
    const { puts, lists, gets, heads } = counting.counts();
    expect({ writes: puts + lists, reads: gets + heads }).toEqual({ writes: 2, reads: 2 });
  });
});

test("what can't be removed keeps no commit from the files, fails the tick and goes later", async () => {
  const clock = new AutoClock();
  const { objects, writer, ids } = await erasable(clock);
  await idleTick(objects, clock, 10);
  const faulty = new FaultyObjects(objects);
  faulty.faultWhen((op) => (op === 'remove' ? 'throttle' : undefined));
  let failed = 0;
  for (let minute = 1; minute <= 80; minute++) {
    clock.advance(MINUTE_MS);
    if (minute % 20 === 0) await writer.store.append('kept', ANY, eventsOf(ids, 1, 10));
    await idleTick(faulty, clock, 100 + minute).catch(() => {
      failed++;
    });
  }
  expect(failed).toBeGreaterThan(0);
  expect(await marksIn(objects)).not.toEqual([]);
  const { boundary, erasure } = await manifestOf(objects);
  expect(await objects.head(commitKey(boundary - 1))).not.toBe(null);
  expect(erasure!.goneMs).toBe(null);
  for (let minute = 1; minute <= 10; minute++) {
    clock.advance(MINUTE_MS);
    await idleTick(objects, clock, 300 + minute);
  }
  expect(await marksIn(objects)).toEqual([]);
  await writer.close();
});
