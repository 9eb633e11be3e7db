import { describe, expect, test } from 'vitest';
import { SkuaError } from '../../core/base/errors.ts';
import { InlineJobs } from '../../core/memory/inline-jobs.ts';
import { silentLog } from '../../core/ports/log.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { NodeErasureChecks } from '../../core/scavenge/erasure-checks/erasure-checks.ts';
import { encodeText } from '../../core/base/text.ts';
import { JOBS } from '../../core/jobs/jobs.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { ERASURE_REPORT, fakeErasure, PROOF_ID } from '../support/fake-erasure.ts';
import { FakeScavenger } from '../support/fake-scavenger.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { openTestStore } from '../support/test-store.ts';

const EVENT = '70000000-0000-4000-8000-000000000001';
const settled = async (proofs: { list(): readonly { readonly state: string }[] }): Promise<void> => {
  while (proofs.list()[0]!.state === 'running')
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
};

describe('a running node', () => {
  test('finds what is there, and proves that it is gone when it is', async () => {
    const storage = new MemoryStorage();
    const clock = new ManualClock();
    const ids = new SeededIds(3);
    const open = await openTestStore({ storage, chunkSizeBytes: 65_536 });
    const proofs = new NodeErasureChecks({
      scavenger: open.scavenger,
      jobs: new InlineJobs({ jobs: JOBS, storage, digests: nodeDigests, ids, clock }),
      clock,
      ids,
      log: silentLog,
    });
    await open.store.append('secret-stream', -2, [
      { id: EVENT, type: 'made', isJson: false, data: encodeText('hidden'), metadata: new Uint8Array(0) },
    ]);
    const first = proofs.start({ stream: 'secret-stream', events: [] });
    await expect(open.scavenger.start()).rejects.toMatchObject({ code: 'backup_running' });
    await settled(proofs);
    expect(proofs.get(first)).toMatchObject({ state: 'done', error: null, report: { traces: 1 } });
    expect(proofs.get(first).bytesDone).toBeGreaterThan(0);
    await open.store.deleteStream('secret-stream', -2, 'hard');
    await open.scavenger.start();
    await open.scavenger.idle();
    const second = proofs.start({ stream: 'secret-stream', events: [EVENT.toUpperCase()] });
    await settled(proofs);
    expect(proofs.get(second)).toMatchObject({ state: 'done', report: { traces: 0 } });
    expect(proofs.get(second).report!.residues).toBeGreaterThan(0);
    await open.close();
  });
});

describe('proofs', () => {
  test('run one at a time, and hold scavenges off until they end', async () => {
    const scavenger = new FakeScavenger();
    const { proofs } = fakeErasure(new ManualClock(), { scavenger });
    const id = proofs.start({ stream: 'orders', events: [] });
    expect([id, scavenger.holds]).toEqual([PROOF_ID, 1]);
    expect(() => proofs.start({ stream: 'others', events: [] })).toThrow(
      expect.objectContaining({ code: 'task_running', data: { taskId: PROOF_ID } }),
    );
    expect(scavenger.holds).toBe(1);
    expect(proofs.list()).toMatchObject([
      { state: 'running', bytesDone: 5, bytesTotal: 10, endedMs: null, report: null },
    ]);
    expect(await proofs.abort(id)).toBe(id);
    expect([proofs.get(id).state, proofs.get(id).error, scavenger.holds]).toEqual(['aborted', null, 0]);
    await expect(proofs.abort(id)).rejects.toMatchObject({ code: 'task_not_found' });
    expect(proofs.start({ stream: 'others', events: [] })).not.toBe(id);
    await proofs.close();
    expect(proofs.list()[0]!.state).toBe('aborted');
    expect(() => proofs.start({ stream: 'others', events: [] })).toThrow(
      expect.objectContaining({ code: 'store_closed' }),
    );
  });

  test('are refused while a scavenge runs, and for what is no id', async () => {
    const scavenger = new FakeScavenger();
    const { proofs } = fakeErasure(new ManualClock(), { scavenger });
    await scavenger.start();
    expect(() => proofs.start({ stream: 'orders', events: [] })).toThrow(
      expect.objectContaining({ code: 'scavenge_in_progress' }),
    );
    scavenger.end('Success');
    for (const events of [[], ['x'], Array.from({ length: 1_001 }, () => EVENT)])
      expect(() => proofs.start({ stream: null, events })).toThrow(expect.objectContaining({ code: 'bad_option' }));
    expect(() => proofs.start({ stream: '$$', events: [] })).toThrow(
      expect.objectContaining({ code: 'invalid_stream_name' }),
    );
    expect([scavenger.holds, proofs.list()]).toEqual([0, []]);
  });

  test('keep the last eight, and what ended them', async () => {
    const { proofs } = fakeErasure(new ManualClock(), { report: new SkuaError('io_error', 'The disk is gone.') });
    const ids: string[] = [];
    for (let i = 0; i < 10; i++) {
      ids.push(proofs.start({ stream: 'orders', events: [] }));
      await settled(proofs);
    }
    expect(proofs.list().map(({ id, state, error }) => [id, state, error])).toEqual(
      ids
        .slice(2)
        .toReversed()
        .map((id) => [id, 'failed', 'The disk is gone.']),
    );
    expect(() => proofs.get(ids[0]!)).toThrow(expect.objectContaining({ code: 'task_not_found' }));
    const { proofs: good } = fakeErasure(new ManualClock(), { report: ERASURE_REPORT });
    good.start({ stream: null, events: [EVENT] });
    await settled(good);
    expect(good.get(PROOF_ID)).toMatchObject({ state: 'done', report: ERASURE_REPORT });
  });
});
