import { expect, test } from 'vitest';
import { streamHasher } from '../../core/base/stream-hash.ts';
import { listAll, type ObjectStore } from '../../core/ports/object-store.ts';
import { startScavenge } from '../../core/shared-log/control/control.ts';
import { openObjectStore } from '../../core/shared-log/shared-log.ts';
import { ANY } from '../../core/streams/api.ts';
import { redact } from '../../core/streams/redact/redact.ts';
import { linkTo, MARKER, paid, readEveryWay, type Ways } from '../scavenge/marks-kit.ts';
import { checkClosed } from '../scavenge/random-check.ts';
import { FaultyObjects } from '../support/faulty-objects.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import { bySize } from '../support/run-size.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { AutoClock } from './auto-clock.ts';
import { idleTick, MINUTE_MS } from './erasure-kit.ts';
import { expectNamedFiles, OPTIONS } from './scavenge-kit.ts';
import { compactionTick, exportDirectory, manifestOf, runTick, uuid, worldOf } from './tick-kit.ts';

/**
 * A tick that takes over the commit of a mark, and scavenges, dies after any call; what was redacted is shown to
 * nobody, and in the end no object has it.
 */

const EVERY = bySize(19, 5, 1);
/** The hour that objects stay, and twice what a writer may know too little of the boundary. */
const GONE_AFTER_MINUTES = 72;
const STREAMS = ['orders', 'other', 'links'];
const SECRET = [1, 3];
const CALLS_MAX = 400;

async function keysWithMarker(objects: ObjectStore): Promise<string[]> {
  const found: string[] = [];
  for await (const { key } of listAll(objects, ''))
    if (Buffer.from((await objects.get(key))!).includes(MARKER)) found.push(key);
  return found;
}

/** Two of the orders lie in files, two in the tail, and so do the marks of one of each. */
async function prepared(clock: AutoClock) {
  const base = new MemoryObjects({ clock });
  const ids = new SeededIds(3);
  await compactionTick(worldOf(base, clock, 1));
  const writer = await openObjectStore(worldOf(base, clock, 2), OPTIONS);
  const { store } = writer;
  for (let n = 0; n < 4; n++) {
    await store.append('orders', ANY, [paid(uuid(ids), SECRET.includes(n) ? MARKER : `harmless ${n}`)]);
    await store.append('other', ANY, [paid(uuid(ids), 'x'.repeat(500))]);
    await store.append('links', ANY, [linkTo(uuid(ids), 'orders', n)]);
    if (n === 1) await compactionTick(worldOf(base, clock, 4));
  }
  const before = await readEveryWay(store, STREAMS, 'links');
  await redact(store, ids, 'ann', { stream: 'orders', numbers: SECRET, reason: 'a card' });
  await startScavenge(worldOf(base, clock, 5));
  await writer.close();
  return { base, before };
}

function expectHidden(before: Ways, after: Ways, when: string): void {
  for (const [way, contents] of before) {
    const now = after.get(way)!;
    expect([...now.keys()], `${way} ${when}`).toEqual([...contents.keys()]);
    for (const [key, content] of contents) {
      const shown = now.get(key)!;
      if (!content.includes(MARKER)) expect(shown, `${way} ${when}`).toBe(content);
      else
        expect(shown, `${way} ${when}`).toMatch(
          /^redacted {2}\{"\$correlationId":"c-[-0-9a-f]{36}","\$causationId":"x"\}$/,
        );
    }
  }
}

test('a tick that dies after any call', async () => {
  const clock = new AutoClock();
  const { base, before } = await prepared(clock);
  let isWhole = false;
  let n = 0;
  for (; !isWhole && n < CALLS_MAX; n += EVERY) {
    const objects = base.fork();
    const faulty = new FaultyObjects(objects, { seed: n });
    faulty.crashAfter(n);
    isWhole = await runTick(worldOf(faulty, clock, 100 + n)).then(
      () => true,
      () => false,
    );
    const look = async (when: string): Promise<void> => {
      await expectNamedFiles(objects);
      const instance = await openObjectStore(worldOf(objects, clock, 9_000 + n), OPTIONS);
      expect(instance.store.redactions.count).toBe(SECRET.length);
      expectHidden(before, await readEveryWay(instance.store, STREAMS, 'links'), when);
      await instance.close();
    };
    await look(`after the call ${n}`);
    for (let minute = 1; minute <= GONE_AFTER_MINUTES; minute++) {
      await idleTick(objects, clock, 1_000 + minute);
      clock.advance(MINUTE_MS);
    }
    await look(`in the end, after the call ${n}`);
    expect(await manifestOf(objects)).toMatchObject({ format: 3, scavenge: { state: 'ended', result: 'Success' } });
    expect(await keysWithMarker(objects)).toEqual([]);
    expect(await checkClosed(await exportDirectory(objects), streamHasher)).toEqual([]);
  }
  expect(n).toBeGreaterThan(40);
  expect(isWhole).toBe(true);
});
