import { describe, expect, it, vi } from 'vitest';
import { ANY, type StoredEvent } from '../../core/streams/api.ts';
import { CLEAN_JOB } from '../../core/scavenge/cleaning.ts';
import { checkErasure, type ErasureFinding, type ErasureSummary } from '../../core/scavenge/erasure/erasure.ts';
import { isSameRecord } from '../../core/log/format/redaction.ts';
import { encodeText } from '../../core/base/text.ts';
import { readWholeAll, readWholeStream } from '../support/oracle.ts';
import { errorsIn } from './chunk-kit.ts';
import { checkpointOf, openWorld, runToEnd, setMetadata, type World } from './control-kit.ts';
import { learn } from './learn-kit.ts';
import { emptiedBytes, type RawRecord, readRawLog } from './raw-log.ts';

/** What a scavenge leaves of the last event of a soft-deleted stream. */

const ID = 'aaaaaaaa-0000-4000-8000-000000000001';

async function write(world: World, stream: string, secret: string, id: string): Promise<void> {
  await world.open.store.append(stream, ANY, [
    {
      id,
      type: 'told',
      isJson: true,
      data: encodeText(`{"secret":"${secret}"}`),
      metadata: encodeText(`{"who":"${secret}"}`),
    },
  ]);
}

/** A stream with one event that is deleted, and one that lives on. Nothing else can be removed. */
async function deleted(scavenge: object = {}): Promise<World> {
  const world = await openWorld({ scavenge: { repairHistory: false, ...scavenge } });
  await write(world, 'gone', 'mine', ID);
  await write(world, 'kept', 'yours', ID.replace('aaaaaaaa', 'bbbbbbbb'));
  await world.open.store.deleteStream('gone', ANY, 'soft');
  return world;
}

async function recordOf(world: World, stream = 'gone'): Promise<RawRecord> {
  return (await readRawLog(world.storage)).find(({ prepare }) => prepare?.stream === stream)!;
}

async function all(world: World): Promise<string[]> {
  const [forward, backward] = [
    await readWholeAll(world.open.store, 'forward', 3),
    await readWholeAll(world.open.store, 'backward', 2),
  ];
  expect(backward.toReversed().map(({ position }) => position)).toEqual(forward.map(({ position }) => position));
  return forward.map(({ stream }) => stream);
}

async function firstChunk(world: World): Promise<string> {
  return (await world.storage.list('')).find((name) => name.startsWith('chunk-000000'))!;
}

async function proved(
  world: World,
  what: { stream?: string; events?: string[] },
): Promise<{ findings: ErasureFinding[]; summary: ErasureSummary }> {
  const findings: ErasureFinding[] = [];
  const search = checkErasure({ storage: world.storage, ...what });
  for (;;) {
    const next = await search.next();
    if (next.done === true) return { findings, summary: next.value };
    if (next.value.kind !== 'progress') findings.push(next.value);
  }
}

describe('the last event of a soft-deleted stream', () => {
  it('keeps its place, length, number, type and id, and loses data and metadata, by a scavenge with threshold 0', async () => {
    const world = await deleted();
    const before = await recordOf(world);
    const kept = await recordOf(world, 'kept');
    expect(await all(world)).toContain('gone');
    await runToEnd(world);
    expect(world.open.scavenger.last()).toMatchObject({ result: 'Success' });
    const after = await recordOf(world);
    expect(after).toMatchObject({
      position: before.position,
      prepare: {
        number: 0,
        type: 'told',
        isEmptied: true,
        metadataBytes: 0,
        dataBytes: before.prepare!.dataBytes + before.prepare!.metadataBytes,
      },
    });
    expect(after.bytes).toBe(emptiedBytes(before));
    expect(after.bytes).not.toContain('mine');
    expect(after.bytes.length).toBe(before.bytes.length);
    expect((await recordOf(world, 'kept')).bytes).toBe(kept.bytes);
    expect(await firstChunk(world)).toBe('chunk-000000.000001');
    await world.open.close();
    expect(await errorsIn(world.storage)).toEqual([]);
  });

  it('is not rewritten once more by the next scavenge, not even where nothing is remembered of the first', async () => {
    const world = await deleted({ disableMerging: true });
    await runToEnd(world);
    await runToEnd(world);
    expect(await firstChunk(world)).toBe('chunk-000000.000001');
    await world.open.close();
    const fresh = await openWorld({
      storage: world.storage,
      seed: 2,
      scavenge: { repairHistory: false, disableMerging: true },
    });
    await runToEnd(fresh);
    expect(await firstChunk(fresh)).toBe('chunk-000000.000001');
    const state = fresh.states.open();
    expect(state.allWeightsZero()).toBe(true);
    state.close();
    await fresh.open.close();
  });

  it('keeps its bytes where the option says so', async () => {
    const world = await deleted({ keepsDeletedData: true });
    const before = await recordOf(world);
    await runToEnd(world);
    expect((await recordOf(world)).bytes).toBe(before.bytes);
    expect(await all(world)).toContain('gone');
    await world.open.close();
  });

  it('loses them as well where earlier runs kept them and forgot the stream: the first run that empties learns the log anew, once', async () => {
    const old = await deleted({ keepsDeletedData: true });
    await runToEnd(old);
    await old.open.close();
    let seed = 1;
    const opened = (keepsDeletedData: boolean) =>
      openWorld({
        storage: old.storage,
        states: old.states,
        seed: ++seed,
        scavenge: { repairHistory: false, keepsDeletedData },
      });
    const learnt = ({ lines }: World) => lines.filter(({ message }) => message.includes('rebuilt from the log')).length;
    const world = await opened(false);
    expect((await world.open.scavenger.explain('gone')).redacted).toMatchObject({ number: 0 });
    // The run ends where what was known is gone, and nothing is learnt yet.
    const remove = vi.spyOn(old.states, 'remove').mockImplementationOnce(() => {
      old.states.remove();
      throw new Error('cut off');
    });
    await runToEnd(world);
    expect([world.open.scavenger.last()?.result, remove.mock.calls.length, checkpointOf(world)]).toEqual([
      'Errored',
      2,
      null,
    ]);
    for (let i = 0; i < 3; i++) {
      await runToEnd(world);
      expect([(await recordOf(world)).prepare!.isEmptied, learnt(world), checkpointOf(world)]).toMatchObject([
        true,
        1,
        { stage: 'Done', point: { emptiesDeleted: true } },
      ]);
    }
    await world.open.close();
    // Once more, when runs have kept such data again meanwhile; that of a run which is gone on with counts for the run
    // it was.
    const keeping = await opened(true);
    await keeping.open.store.deleteStream('kept', ANY, 'soft');
    keeping.jobs.hook = (name) => {
      if (name === CLEAN_JOB) throw new Error('cut off');
    };
    await runToEnd(keeping);
    keeping.jobs.hook = null;
    await keeping.open.close();
    const last = await opened(false);
    await runToEnd(last);
    expect([(await recordOf(last, 'kept')).prepare!.isEmptied, checkpointOf(last)!.point.emptiesDeleted]).toEqual([
      false,
      undefined,
    ]);
    await runToEnd(last);
    expect([(await recordOf(last, 'kept')).prepare!.isEmptied, learnt(last)]).toEqual([true, 1]);
    await last.open.close();
    expect(await errorsIn(last.storage)).toEqual([]);
  });

  it('is emptied by the run behind one that was stopped when all was forgotten and nothing learnt yet: that one leaves a database that has begun', async () => {
    const old = await deleted({ keepsDeletedData: true });
    await runToEnd(old);
    await old.open.close();
    const world = await openWorld({
      storage: old.storage,
      states: old.states,
      seed: 2,
      scavenge: { repairHistory: false },
    });
    vi.spyOn(old.states, 'remove').mockImplementationOnce(() => {
      old.states.remove();
      void world.open.scavenger.stop('current');
    });
    await runToEnd(world);
    expect([world.open.scavenger.last()?.result, checkpointOf(world)]).toMatchObject([
      'Stopped',
      { stage: 'Accumulating', point: { emptiesDeleted: true } },
    ]);
    await runToEnd(world);
    expect([(await recordOf(world)).prepare!.isEmptied, checkpointOf(world)]).toMatchObject([true, { stage: 'Done' }]);
    await world.open.close();
  });

  it('is passed over by $all in both directions, by filters and subscriptions, and its stream goes on behind its number', async () => {
    const world = await deleted();
    await runToEnd(world);
    const { store } = world.open;
    expect(await all(world)).not.toContain('gone');
    const filtered = await store.readAll({
      direction: 'forward',
      from: 'start',
      count: 100,
      filter: { on: 'stream', prefixes: ['gone'] },
    });
    expect(filtered.events).toEqual([]);
    const signal = new AbortController();
    const seen: StoredEvent[] = [];
    for await (const message of store.subscribeToAll({ after: 'start', signal: signal.signal })) {
      if (message.kind === 'event') seen.push(message.event);
      else if (message.kind === 'caught-up') signal.abort();
    }
    expect(seen.map(({ stream }) => stream)).toEqual(await all(world));
    // Metadata that show again what was deleted show no event without its data either.
    await setMetadata(world.open, 'gone', {});
    expect(await readWholeStream(store, 'gone', 'forward', 5)).toEqual([]);
    expect(await readWholeStream(store, 'gone', 'backward', 5)).toEqual([]);
    await store.deleteStream('gone', ANY, 'soft');
    await write(world, 'gone', 'again', ID.replace('aaaaaaaa', 'cccccccc'));
    expect(await readWholeStream(store, 'gone', 'forward', 5)).toMatchObject([{ number: 1 }]);
    await world.open.close();
  });

  it('keeps its data while the stream lives again, or its event was written behind the metadata that deleted it', async () => {
    const world = await deleted();
    await write(world, 'gone', 'again', ID.replace('aaaaaaaa', 'cccccccc'));
    await runToEnd(world);
    const records = (await readRawLog(world.storage)).filter(({ prepare }) => prepare?.stream === 'gone');
    expect(records.map(({ prepare }) => [prepare!.number, prepare!.isEmptied])).toEqual([[1, false]]);
    await world.open.close();
    // A crash cut off the metadata that such an event is written with.
    const learner = await learn('a0, M0(a){tb=MAX}, a1 | SP', { point: 'SP', keepsDeletedData: false });
    expect(await learner.explain('a')).not.toHaveProperty('redacted');
    const { totals } = await learner.dryRun();
    expect(totals.redactable).toBe(0);
  });

  it('is counted by explain, dry run and proof of erasure', async () => {
    const world = await deleted();
    const { bytes } = (await world.open.scavenger.explain('gone')).redacted!;
    expect(bytes).toBe((await recordOf(world)).prepare!.dataBytes + (await recordOf(world)).prepare!.metadataBytes);
    expect((await proved(world, { stream: 'gone' })).summary).toMatchObject({ traces: 1, redacted: 0 });
    await runToEnd(world);
    const explanation = await world.open.scavenger.explain('gone');
    expect(explanation).not.toHaveProperty('redacted');
    expect(explanation.kept).toMatchObject([
      { from: 0, to: 0, why: 'last event of the deleted stream, without its data' },
    ]);
    const ofStream = await proved(world, { stream: 'gone' });
    expect(ofStream.summary).toMatchObject({ traces: 0, redacted: 1 });
    expect(ofStream.findings.map(({ what }) => what)).toContain(
      "event 0 of 'gone', whose content a scavenge has removed",
    );
    const ofId = await proved(world, { events: [ID] });
    expect(ofId).toMatchObject({ summary: { traces: 0, residues: 1, redacted: 1 }, findings: [{ kind: 'residue' }] });
    await world.open.close();
    const { chunks, totals } = await (
      await learn('a0, b0 | M0(a){tb=MAX}, SP', { point: 'SP', keepsDeletedData: false })
    ).dryRun();
    expect(
      chunks.map(({ weight, discardable, redactable, wouldExecute }) => [
        weight,
        discardable,
        redactable,
        wouldExecute,
      ]),
    ).toEqual([
      [2, 0, 1, true],
      [0, 0, 0, false],
    ]);
    expect(totals).toMatchObject({ redactable: 1, discardable: 0 });
  });

  it('is emptied by several threads, in neighbours that become one file, and by a later merge as it is', async () => {
    for (const [mergesWhileExecuting, threads] of [
      [true, 1],
      [true, 4],
      [false, 4],
    ] as const) {
      const world = await openWorld({ scavenge: { repairHistory: false, mergesWhileExecuting } });
      for (let i = 0; i < 60; i++) {
        const id = `dddddddd-0000-4000-8000-${String(i).padStart(12, '0')}`;
        await write(world, `gone-${i % 6}`, 'mine'.repeat(400), id);
        await write(world, 'kept', 'yours'.repeat(200), id.replace('dddddddd', 'eeeeeeee'));
      }
      for (let i = 0; i < 6; i++) await world.open.store.deleteStream(`gone-${i}`, ANY, 'soft');
      const before = new Map((await readRawLog(world.storage)).map((record) => [record.position, record]));
      await runToEnd(world, { threads });
      const left = (await readRawLog(world.storage)).filter(
        ({ prepare }) => prepare?.stream.startsWith('gone-') === true,
      );
      expect(left).toHaveLength(6);
      for (const record of left) expect(record.bytes).toBe(emptiedBytes(before.get(record.position)!));
      expect((await all(world)).some((stream) => stream.startsWith('gone-'))).toBe(false);
      await world.open.close();
      expect(await errorsIn(world.storage)).toEqual([]);
    }
  });
});

describe('comparing a copy with another log', () => {
  /** Framed, as records lie in files. */
  const framed = (text: string): Buffer => {
    const payload = Buffer.from(text, 'latin1');
    const out = Buffer.alloc(payload.length + 8);
    out.writeInt32LE(payload.length, 0);
    payload.copy(out, 4);
    out.writeInt32LE(payload.length, 4 + payload.length);
    return out;
  };

  it('takes an emptied event for the same as the whole one, whichever has it, and no other', async () => {
    const world = await deleted();
    const [gone, kept] = [await recordOf(world), await recordOf(world, 'kept')];
    await world.open.close();
    const [whole, empty] = [framed(gone.bytes), framed(emptiedBytes(gone))];
    const same = (a: Uint8Array, b: Uint8Array) => isSameRecord(a, 0, b, 0, a.length);
    expect([same(whole, whole), same(whole, empty), same(empty, whole), same(empty, empty)]).toEqual([
      true,
      true,
      true,
      true,
    ]);
    // Another id; data that say something else; another event of the same length.
    expect(whole.indexOf('mine')).toBeGreaterThan(0);
    for (const at of [whole.indexOf('gone') + 5, whole.indexOf('mine')]) {
      const other = Uint8Array.from(whole);
      other[at]! ^= 1;
      expect([same(whole, other), same(other, whole)]).toEqual([false, false]);
    }
    const otherId = Uint8Array.from(whole);
    otherId[whole.indexOf('gone') + 5]! ^= 1;
    expect([same(otherId, empty), same(empty, otherId)]).toEqual([false, false]);
    expect(same(framed(kept.bytes), empty)).toBe(false);
  });
});
