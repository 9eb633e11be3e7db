import { describe, expect, test } from 'vitest';
import { checkErasureInObjects, type ObjectErasureFinding } from '../../core/shared-log/erasure-check/erasure-check.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import type { ObjectStore } from '../../core/ports/object-store.ts';
import { ANY } from '../../core/streams/api.ts';
import { AutoClock } from './auto-clock.ts';
import { erasable, idleTick, marksIn, MINUTE_MS } from './erasure-kit.ts';
import { eventsOf, worldOf } from './tick-kit.ts';

async function prove(
  objects: ObjectStore,
  clock: AutoClock,
  asked: { readonly stream?: string; readonly events?: readonly string[] } = { stream: 'doomed' },
) {
  const findings: ObjectErasureFinding[] = [];
  const search = checkErasureInObjects({ world: worldOf(objects, clock, 900), ...asked });
  for (let next = await search.next(); ; next = await search.next()) {
    if (next.done === true)
      return { traces: findings.filter(({ kind }) => kind === 'trace'), findings, summary: next.value };
    if (next.value.kind !== 'progress') findings.push(next.value);
  }
}

describe('what remains of a stream in a bucket', () => {
  test('is found in every object in which there is some, with the time at which it goes', async () => {
    const clock = new AutoClock();
    const { objects, writer } = await erasable(clock);
    const keysOf = async () => new Set((await prove(objects, clock)).traces.map(({ file }) => file.split(' ')[0]));
    const before = await prove(objects, clock);
    expect(await keysOf()).toEqual(new Set(await marksIn(objects)));
    expect(before.traces.some(({ goesBy }) => goesBy === undefined)).toBe(true);
    await idleTick(objects, clock, 10);
    const endedMs = clock.nowMs();
    await idleTick(objects, clock, 11);
    const after = await prove(objects, clock);
    expect(await keysOf()).toEqual(new Set(await marksIn(objects)));
    expect(after.summary).toMatchObject({ traces: after.traces.length, waiting: after.traces.length });
    for (const { goesBy } of after.traces) expect(Date.parse(goesBy!)).toBeGreaterThan(endedMs + 60 * MINUTE_MS);
    expect(after.summary.goneBy).toBe(
      after.traces
        .map(({ goesBy }) => goesBy!)
        .toSorted()
        .at(-1),
    );
    for (let minute = 1; minute <= 72; minute++) {
      clock.advance(MINUTE_MS);
      await idleTick(objects, clock, 100 + minute);
    }
    const { summary, findings } = await prove(objects, clock);
    expect(summary).toMatchObject({ traces: 0, waiting: 0 });
    expect(findings.some(({ what }) => what.includes('tombstone'))).toBe(true);
    await writer.close();
  });

  test('is found beside a writer, event by event too', async () => {
    const clock = new AutoClock();
    const { objects, writer, ids } = await erasable(clock);
    const [event] = eventsOf(ids, 1, 10);
    await writer.store.append('other', ANY, [event!]);
    const search = prove(objects, clock, { events: [event!.id] });
    for (let i = 0; i < 20; i++) await writer.store.append('kept', ANY, eventsOf(ids, 1, 100));
    expect((await search).traces.length).toBeGreaterThan(0);
    await writer.close();
  });

  test('is not looked for where there is no store', async () => {
    await expect(prove(new MemoryObjects(), new AutoClock())).rejects.toMatchObject({ code: 'file_not_found' });
  });
});
