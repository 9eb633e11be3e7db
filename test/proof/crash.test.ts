import { beforeAll, describe, expect, it } from 'vitest';
import type { Anchor } from '../../core/integrity/format/chain-layout.ts';
import { isCrash } from '../support/crash.ts';
import { OUTCOMES } from '../support/crash-run.ts';
import { FaultyStorage } from '../support/faulty-storage.ts';
import { MemoryScavengeStates } from '../../core/memory/memory-scavenge-state.ts';
import { Random } from '../support/random.ts';
import { bySize } from '../support/run-size.ts';
import { append, fill, openProven, scavenge, verify } from './proof-kit.ts';

/** Distance of the operations at which the power fails. */
const STEP = bySize(73, 7, 1);

let image: FaultyStorage;
let early: Anchor;
let operations = 0;

/**
 * A scavenge, an anchor, and another scavenge that merges; the anchors that were made. A crash ends it where it comes.
 */
async function work(storage: FaultyStorage, states: MemoryScavengeStates, made: Anchor[]): Promise<void> {
  const open = await openProven(storage, { scavengeStates: states, seed: 7 });
  await open.store.deleteStream('gone', -2, 'hard');
  await scavenge(open);
  made.push(await open.hashChain!.anchor());
  await open.store.deleteStream('other', -2, 'hard');
  await append(open, 'kept', new Uint8Array(20));
  await scavenge(open);
  made.push(await open.hashChain!.anchor());
  await open.close();
}

beforeAll(async () => {
  image = new FaultyStorage({ seed: 5 });
  const open = await openProven(image, { seed: 3 });
  await fill(open, new Random(41), 600);
  early = await open.hashChain!.anchor();
  await fill(open, new Random(42), 100);
  await open.close();
  const dry = image.restart('keep');
  await work(dry, new MemoryScavengeStates(), []);
  ({ operations } = dry);
});

describe('a power loss', () => {
  it('at any operation of scavenges leaves a directory that verifies as it is, and whose chain goes on', async () => {
    expect(operations).toBeGreaterThan(150);
    const wrong: string[] = [];
    for (let n = 1, turn = 0; n <= operations; n += STEP, turn++) {
      const storage = image.restart('keep');
      storage.crashAt(n);
      const made = [early];
      await work(storage, new MemoryScavengeStates(), made).catch((error: unknown) => {
        if (!storage.isCrashed && !isCrash(error)) throw error;
      });
      const [mode, seed] = OUTCOMES[turn % OUTCOMES.length]!;
      const found = storage.restart(mode, seed);
      const atOnce = await verify(found, made);
      if (atOnce.findings > 0) wrong.push(`crash at ${n} (${mode}): ${atOnce.told[0]!.message}`);
      const again = await openProven(found, { scavengeStates: new MemoryScavengeStates(), seed: 9 });
      await append(again, 'kept', new Uint8Array(10));
      await scavenge(again);
      made.push(await again.hashChain!.anchor());
      await again.close();
      const afterwards = await verify(found, made, true);
      if (afterwards.findings > 0 || afterwards.anchors !== made.length)
        wrong.push(`after a crash at ${n} (${mode}): ${afterwards.told[0]?.message}`);
      if ((await found.list('proofs')).some((name) => name.endsWith('.tmp')))
        wrong.push(`after a crash at ${n}: files of unfinished work stay`);
    }
    expect(wrong).toEqual([]);
  });

  it('between a receipt and its switch is told as a void receipt by the next start', async () => {
    const storage = image.restart('keep');
    const open = await openProven(storage, { scavengeStates: new MemoryScavengeStates(), seed: 7 });
    await open.store.deleteStream('gone', -2, 'hard');
    // The receipt gets its name, and then the new chunk file can't.
    storage.failWhen((op, path) => (op === 'rename' && path.includes('scavenge') ? 'io_error' : undefined));
    await open.scavenger.start({});
    await open.scavenger.idle();
    expect(open.scavenger.last()!.result).toBe('Errored');
    expect(await storage.list('proofs')).toContain('receipt-0000000000');
    const receipts = open.hashChain!.figures.receipts;
    storage.crash();
    const found = storage.restart('keep');
    expect(await verify(found, [early])).toMatchObject({ findings: 0, uncovered: 0, removed: 0 });
    const again = await openProven(found, { scavengeStates: new MemoryScavengeStates(), seed: 9 });
    // The newest one is declared void; one before it was by the run itself.
    expect(again.hashChain!.figures.receipts).toBe(receipts + 1);
    const anchor = await again.hashChain!.anchor();
    expect(await verify(found, [early, anchor], true)).toMatchObject({ findings: 0, removed: 0, anchors: 2 });
    await scavenge(again);
    const after = await again.hashChain!.anchor();
    await again.close();
    const verdict = await verify(found, [early, anchor, after], true);
    expect(verdict).toMatchObject({ findings: 0, anchors: 3 });
    expect(verdict.removed).toBeGreaterThan(100);
  });

  it('and a full disk keep a scavenge from removing what can not be told', async () => {
    const storage = image.restart('keep');
    const open = await openProven(storage, { scavengeStates: new MemoryScavengeStates(), seed: 7 });
    await open.store.deleteStream('gone', -2, 'hard');
    const chunks = (await storage.list('')).filter((name) => name.startsWith('chunk-')).length;
    storage.failWhen((op, path) => (op !== 'read' && path.startsWith('proofs/') ? 'disk_full' : undefined));
    await open.scavenger.start({});
    await open.scavenger.idle();
    expect(open.scavenger.last()).toMatchObject({
      result: 'Errored',
      error: expect.stringContaining('could not be written'),
    });
    expect(
      (await storage.list('')).filter((name) => /^chunk-\d+\.\d+$/.test(name) && !name.endsWith('.000000')),
    ).toEqual([]);
    expect((await storage.list('')).filter((name) => name.startsWith('chunk-')).length).toBeGreaterThanOrEqual(chunks);
    storage.failWhen(undefined);
    await scavenge(open);
    const anchor = await open.hashChain!.anchor();
    await open.close();
    expect(await verify(storage, [early, anchor], true)).toMatchObject({ findings: 0, anchors: 2 });
  });
});
