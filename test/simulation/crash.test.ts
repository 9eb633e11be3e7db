import { describe, expect, it } from 'vitest';
import { isSkuaError } from '../../core/base/errors.ts';
import { MOMENTS, OUTCOMES, checkAfterCrash, checkOpened, openOn, runChain, runFaulty } from '../support/crash-run.ts';
import type { Run } from '../support/crash-run.ts';
import { findFormatErrors } from '../support/check-directory.ts';
import { isCrash } from '../support/crash.ts';
import { findLosses } from '../support/check-store.ts';
import { bySize, seedsFrom } from '../support/run-size.ts';

/**
 * The power fails at every single mutating operation of a seeded workload that completes chunks, flushes the memtable
 * and merges index tables. Whatever the disk makes of it: what was acknowledged is there, nothing is there in part.
 */

const SEED = 11;
const ROUNDS = 20;
/** Every how many operations one is tried: no multiple of 3, since the moments of crashes change with them. */
const EVERY = bySize(101, 7, 1);
/** Refusals that are part of the workload. */
const EXPECTED_REFUSALS = [null, 'stream_deleted', 'stream_not_found', 'wrong_expected_version'];

async function undisturbed(): Promise<Run> {
  return runFaulty({ seed: SEED, rounds: ROUNDS, faults: () => {}, close: true });
}

describe('without a fault', () => {
  it('keeps the whole workload, in the format, and touches every part of the store', async () => {
    const run = await undisturbed();
    expect(run.openError).toBe(null);
    for (const request of run.requests) expect(EXPECTED_REFUSALS).toContain(request.refusedWith);
    expect(run.requests.filter((request) => request.acknowledged !== null).length).toBeGreaterThan(30);
    expect(await findFormatErrors(run.storage)).toEqual([]);
    const paths = run.storage.ops.map((op) => `${op.op} ${op.path}`);
    expect(
      paths.some((path) => path.includes('chunk-000002.000000')),
      'chunks were completed',
    ).toBe(true);
    expect(
      paths.filter((path) => path.startsWith('rename index/indexmap')).length,
      'index tables were flushed and merged',
    ).toBeGreaterThan(2);
    expect(
      paths.filter((path) => /^remove index\/[0-9a-f-]{36}$/.test(path)).length,
      'merged tables were removed',
    ).toBeGreaterThan(0);
    expect(run.storage.violations).toEqual([]);
    expect(await checkOpened(run.storage, run)).toEqual([]);
  });

  it('acknowledges only after a completed sync of the chunk file that came after the write', async () => {
    const run = await undisturbed();
    const ops = run.storage.ops;
    let checked = 0;
    for (const { acknowledged } of run.requests) {
      if (acknowledged === null) continue;
      const number = Math.floor(acknowledged.position / 65_536);
      const path = `chunk-${String(number).padStart(6, '0')}.000000`;
      const raw = 128 + acknowledged.position - number * 65_536;
      const before = ops.slice(0, acknowledged.operations);
      const written = before.findLastIndex(
        (op) => op.op === 'writeAt' && op.path === path && op.position <= raw && raw < op.position + op.length,
      );
      expect(written, `the write at ${acknowledged.position}`).toBeGreaterThanOrEqual(0);
      const synced = before.findIndex(
        (op, i) => i > written && op.op === 'sync' && op.path === path && op.error === undefined,
      );
      expect(synced, `the sync after the write at ${acknowledged.position}`).toBeGreaterThan(written);
      checked++;
    }
    expect(checked).toBeGreaterThan(30);
  });
});

describe('power loss', () => {
  it('at every operation loses nothing that was acknowledged', async () => {
    const operations = (await undisturbed()).storage.operations;
    expect(operations).toBeGreaterThan(200);
    for (let n = 1; n <= operations; n += EVERY) {
      const run = await runFaulty({
        seed: SEED,
        rounds: ROUNDS,
        faults: (storage) => storage.crashAt(n, MOMENTS[n % 3]),
        close: true,
      });
      expect(run.storage.isCrashed, `operation ${n} is reached`).toBe(true);
      for (const outcome of OUTCOMES)
        expect(await checkAfterCrash(run, outcome), `crash ${MOMENTS[n % 3]} operation ${n}`).toEqual([]);
    }
  });

  it('again at every operation of the recovery loses nothing either', async () => {
    const operations = (await undisturbed()).storage.operations;
    let crashes = 0;
    for (let n = 5; n <= operations; n += 31 * EVERY) {
      const run = await runFaulty({ seed: SEED, rounds: ROUNDS, faults: (storage) => storage.crashAt(n), close: true });
      const first = n % 2 === 0 ? 'partial' : 'clean';
      const trial = run.storage.restart(first, n);
      await openOn(trial, 5);
      const { operations: recovery } = trial;
      expect(recovery).toBeGreaterThan(5);
      for (let m = 1; m <= recovery; m++) {
        const recovering = run.storage.restart(first, n);
        recovering.crashAt(m, MOMENTS[m % 3]);
        // The last operations may come after the store is open.
        const error = await openOn(recovering, 5).then(
          () => null,
          (reason: unknown) => reason,
        );
        if (error !== null && !isCrash(error) && !isSkuaError(error, 'writer_stopped')) throw error;
        crashes += recovering.isCrashed ? 1 : 0;
        const mode = m % 3 === 0 ? 'clean' : 'partial';
        const problems = await checkOpened(recovering.restart(mode, m), run, mode === 'clean');
        expect(problems, `crash at operation ${n}, then at operation ${m} of the recovery, ${mode}`).toEqual([]);
      }
    }
    expect(crashes).toBeGreaterThan(80 / EVERY);
  });
});

describe('many power losses', () => {
  it.each(seedsFrom(1, bySize(1, 3, 50)))('one after the other on one disk, seed %d', async (seed) => {
    expect(await runChain(seed, 8)).toEqual([]);
  });
});

describe('a full disk', () => {
  it('at any single operation refuses a write, changes nothing, and later writes succeed', async () => {
    const { ops } = (await undisturbed()).storage;
    for (let n = 1; n <= ops.length; n += EVERY) {
      const { op, path } = ops[n - 1]!;
      if (op !== 'writeAt' && op !== 'create' && op !== 'truncate') continue;
      const name = `disk full at operation ${n}, ${op} of ${path}`;
      const run = await runFaulty({ seed: SEED, rounds: ROUNDS, faults: (storage) => storage.failAt(n, 'disk_full') });
      if (run.opened === null) {
        expect(run.openError, name).toBe('disk_full');
        expect(await checkOpened(run.storage, run), name).toEqual([]);
        continue;
      }
      const refused = run.requests.filter((request) => !EXPECTED_REFUSALS.includes(request.refusedWith));
      expect(
        refused.map((request) => request.refusedWith).filter((code) => code !== 'disk_full'),
        name,
      ).toEqual([]);
      expect(
        new Set(refused.map((request) => request.round)).size,
        `${name}: writes of one round only are refused`,
      ).toBeLessThanOrEqual(1);
      expect(await findLosses(run.opened.store, run.requests, run.nowMs), name).toEqual([]);
      await run.opened.close();
      // An index file whose map could not be saved stays until the next start.
      expect(
        (await findFormatErrors(run.storage)).filter((error) => !error.endsWith('belongs to nothing')),
        name,
      ).toEqual([]);
      expect(await checkOpened(run.storage, run), name).toEqual([]);
      expect(await findFormatErrors(run.storage), name).toEqual([]);
    }
  });

  it('that lasts refuses writes until there is space again', async () => {
    const run = await runFaulty({ seed: SEED, rounds: ROUNDS, faults: (storage) => storage.setCapacity(150_000) });
    const codes = run.requests.map((request) => request.refusedWith);
    expect(codes.filter((code) => code === 'disk_full').length).toBeGreaterThan(10);
    expect(codes.filter((code) => code !== 'disk_full' && !EXPECTED_REFUSALS.includes(code))).toEqual([]);
    expect(await findLosses(run.opened!.store, run.requests, run.nowMs)).toEqual([]);
    run.storage.setCapacity(Number.MAX_SAFE_INTEGER);
    const event = {
      id: 'abcdefab-1111-4111-8111-111111111111',
      type: 't',
      isJson: false,
      data: new Uint8Array(60_000),
      metadata: new Uint8Array(0),
    };
    const result = await run.opened!.store.append('space', -1, [event]);
    expect(result.firstEventNumber).toBe(0);
    await run.opened!.close();
    expect(await findFormatErrors(run.storage)).toEqual([]);
  });
});

describe('a failed sync', () => {
  it('stops the writer for good where durability was at stake, and loses nothing', async () => {
    const { ops } = (await undisturbed()).storage;
    let stopped = 0;
    for (let n = 1; n <= ops.length; n += EVERY) {
      const { op, path } = ops[n - 1]!;
      if (op !== 'sync') continue;
      const name = `sync failure at operation ${n}, ${path}`;
      const run = await runFaulty({
        seed: SEED,
        rounds: ROUNDS,
        faults: (storage) => storage.failAt(n, 'sync_failed'),
      });
      if (run.opened !== null) {
        const first = run.requests.findIndex((request) => request.refusedWith === 'writer_stopped');
        if (first >= 0) {
          stopped++;
          const later = run.requests.filter((request) => request.round > run.requests[first]!.round);
          expect(
            later.map((request) => request.acknowledged),
            `${name}: nothing is acknowledged afterwards`,
          ).toEqual(later.map(() => null));
          expect((await run.opened.failed).code, name).toBe('writer_stopped');
        } else if (/^chunk-\d{6}\.\d{6}$/.test(path)) throw new Error(`${name}: the writer went on`);
        expect(await findLosses(run.opened.store, run.requests, run.nowMs, []), `${name}: what readers see`).toEqual(
          [],
        );
      }
      expect(run.storage.violations, name).toEqual([]);
      for (const outcome of OUTCOMES.filter(([mode, seed]) => mode !== 'drop' && seed === 1))
        expect(await checkAfterCrash(run, outcome), name).toEqual([]);
    }
    expect(stopped).toBeGreaterThanOrEqual(Math.floor(20 / EVERY));
  });
});
