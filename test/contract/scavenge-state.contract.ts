import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Hash64 } from '../../core/base/stream-hash.ts';
import type { StreamHasher } from '../../core/base/stream-hash.ts';
import { TOMBSTONE } from '../../core/log/format/records.ts';
import type {
  OriginalStreamData,
  ScavengeCheckpoint,
  ScavengePoint,
  ScavengeState,
  ScavengeStateOptions,
  ScavengeStates,
  StreamHandle,
} from '../../core/ports/scavenge-state.ts';
import { compareCodePoints } from '../../core/ports/scavenge-state.ts';
import { Random } from '../support/random.ts';

export const STATE_OPTIONS: ScavengeStateOptions = {
  pageSizeBytes: 16_384,
  cacheBytes: 1_048_576,
  hashUsersCacheEntries: 8,
};

/**
 * Names that begin with the same character share a hash; the sign of the hash changes from one character to the next.
 */
export const firstCharHasher: StreamHasher = {
  hash(name: string, out: Hash64): void {
    out.hi = Math.imul(name.charCodeAt(0), 0x9e37_79b1) >>> 0;
    out.lo = (0xffff_ff00 | name.charCodeAt(0)) >>> 0;
  },
  hashUtf8(bytes: Uint8Array, at: number, length: number, out: Hash64): void {
    this.hash(new TextDecoder().decode(bytes.subarray(at, at + length)), out);
  },
};

const POINT: ScavengePoint = {
  position: 11_197_364,
  eventNumber: 3,
  effectiveNowMs: 1_795_000_000_123,
  effectiveNowTicks: 4_567,
  threshold: -1,
};
const DONE: ScavengeCheckpoint = { point: POINT, stage: 'Done' };
export const ACTIVE: OriginalStreamData = {
  isTombstoned: false,
  maxAge: null,
  maxCount: 3,
  truncateBefore: null,
  discardPoint: 0,
  maybeDiscardPoint: 0,
  status: 1,
};

export function hashOf(name: string): [hi: number, lo: number] {
  const out = new Hash64();
  firstCharHasher.hash(name, out);
  return [out.hi, out.lo];
}

const handleOf = (name: string): StreamHandle => ({ kind: 'hash', hi: hashOf(name)[0], lo: hashOf(name)[1] });
const signed = (handle: StreamHandle): bigint =>
  BigInt.asIntN(64, (BigInt((handle as { hi: number }).hi) << 32n) | BigInt((handle as { lo: number }).lo));

/** What every implementation of the scavenge state promises. `make` gives states that hash by `firstCharHasher`. */
export function describeScavengeState(
  kind: string,
  make: () => Promise<{ states: ScavengeStates; dispose(): Promise<void> }>,
): void {
  describe(`ScavengeState: ${kind}`, () => {
    let states: ScavengeStates;
    let state: ScavengeState;
    let dispose: () => Promise<void>;
    beforeEach(async () => {
      ({ states, dispose } = await make());
      state = states.open(STATE_OPTIONS);
    });
    afterEach(async () => {
      state.close();
      await dispose();
    });

    const register = (name: string): boolean => state.register(name, ...hashOf(name));
    const original = (name: string) => state.original(name, ...hashOf(name));
    const setOriginal = (name: string, data: OriginalStreamData): void => {
      state.setOriginal(name, ...hashOf(name), data);
    };
    const metastream = (name: string) => state.metastream(name, ...hashOf(name));
    const inTransaction = (work: () => void): void => {
      state.begin();
      work();
      state.commit(DONE);
    };
    const reopen = (): void => {
      state.close();
      state = states.open(STATE_OPTIONS);
    };

    test('a new one is empty', () => {
      expect(state.checkpoint()).toBeNull();
      expect(state.collisions()).toEqual([]);
      expect(original('a')).toBeUndefined();
      expect(metastream('a')).toBeUndefined();
      expect(state.activeOriginals(null, 10)).toEqual([]);
      expect(state.chunkTimeRange(0)).toBeUndefined();
      expect(state.weight(0, 1_000)).toBe(0);
      expect(state.allWeightsZero()).toBe(true);
    });

    describe('transactions', () => {
      test('what was committed is there for others and after a reopening; what was not is gone', () => {
        inTransaction(() => setOriginal('a', ACTIVE));
        state.begin();
        setOriginal('b', ACTIVE);
        state.rollback();
        state.begin();
        setOriginal('c', ACTIVE);
        reopen();
        expect([original('a'), original('b'), original('c')]).toEqual([ACTIVE, undefined, undefined]);
        const other = states.open(STATE_OPTIONS);
        expect(other.originalByHash(...hashOf('a'))).toEqual(ACTIVE);
        other.close();
      });

      test('a rollback brings back what was there, in every table', () => {
        inTransaction(() => {
          register('x1');
          setOriginal('x1', ACTIVE);
          state.setMetastream('x1', ...hashOf('x1'), { isTombstoned: false, discardPoint: 4 });
          state.addWeight(1, 2);
          state.setChunkTimeRange(1, 100, 200);
        });
        const before = [
          original('x1'),
          metastream('x1'),
          state.weight(0, 9),
          state.chunkTimeRange(1),
          state.collisions(),
          state.checkpoint(),
        ];
        state.begin();
        expect(register('x2')).toBe(true);
        setOriginal('x1', { ...ACTIVE, maxCount: 7 });
        setOriginal('x2', ACTIVE);
        state.addWeight(1, 5);
        state.addWeight(2, 5);
        state.setChunkTimeRange(1, 50, 300);
        state.resetWeights(1, 1);
        state.deleteMetastreams();
        state.deleteOriginals([1]);
        state.rollback();
        expect([
          original('x1'),
          metastream('x1'),
          state.weight(0, 9),
          state.chunkTimeRange(1),
          state.collisions(),
          state.checkpoint(),
        ]).toEqual(before);
        expect(state.isCollision('x1')).toBe(false);
        expect(state.isSharedHash(...hashOf('x1'))).toBe(false);
      });

      test('names registered in a transaction that was rolled back are unknown again', () => {
        state.begin();
        register('x1');
        state.rollback();
        inTransaction(() => expect([register('x2'), register('x2'), register('x1')]).toEqual([false, false, true]));
        expect(state.collisions()).toEqual(['x1', 'x2']);
      });

      test('there is one transaction at a time, and an end needs a beginning', () => {
        expect(() => state.commit(DONE)).toThrow(expect.objectContaining({ code: 'scavenge_failed' }));
        expect(() => state.rollback()).toThrow(expect.objectContaining({ code: 'scavenge_failed' }));
        state.begin();
        expect(() => state.begin()).toThrow(expect.objectContaining({ code: 'scavenge_failed' }));
        state.commit(DONE);
      });

      test('a temporary state begins empty, is not shared and leaves nothing', () => {
        inTransaction(() => setOriginal('a', ACTIVE));
        const temporary = states.openTemporary(STATE_OPTIONS);
        expect(temporary.originalByHash(...hashOf('a'))).toBeUndefined();
        temporary.begin();
        temporary.setOriginal('b', ...hashOf('b'), ACTIVE);
        temporary.commit({ point: POINT, stage: 'Cleaning' });
        expect(temporary.originalByHash(...hashOf('b'))).toEqual(ACTIVE);
        temporary.close();
        expect(state.checkpoint()).toEqual(DONE);
        expect(original('b')).toBeUndefined();
      });
    });

    describe('checkpoint', () => {
      const hash = (hi: number, lo: number): StreamHandle => ({ kind: 'hash', hi, lo });
      test.each<[string, ScavengeCheckpoint]>([
        ['nothing accumulated', { point: POINT, stage: 'Accumulating' }],
        ['chunk 0 accumulated', { point: POINT, stage: 'Accumulating', doneChunk: 0 }],
        ['nothing calculated', { point: POINT, stage: 'Calculating' }],
        [
          'calculated to a name',
          { point: POINT, stage: 'Calculating', doneStream: { kind: 'id', name: 'Köln "a\\b" 𝄞' } },
        ],
        ['calculated to a hash', { point: POINT, stage: 'Calculating', doneStream: hash(0xfb6d_5a53, 0x1122_3344) }],
        [
          'calculated to the greatest hash',
          { point: POINT, stage: 'Calculating', doneStream: hash(0xffff_ffff, 0xffff_ffff) },
        ],
        ['calculated to hash 0', { point: POINT, stage: 'Calculating', doneStream: hash(0, 0) }],
        ['executing', { point: POINT, stage: 'ExecutingChunks', doneChunk: 51 }],
        ['merging', { point: POINT, stage: 'MergingChunks' }],
        ['the index', { point: POINT, stage: 'ExecutingIndex' }],
        ['cleaning', { point: POINT, stage: 'Cleaning' }],
        [
          'done at a point of zeros',
          { point: { position: 0, eventNumber: 0, effectiveNowMs: 1_795_000_000_000, threshold: 0 }, stage: 'Done' },
        ],
      ])('%s comes back as it was', (_name, checkpoint) => {
        state.begin();
        state.commit(checkpoint);
        reopen();
        expect(state.checkpoint()).toEqual(checkpoint);
      });
    });

    describe('collisions', () => {
      test('two names with a hash collide once; a third adds itself', () => {
        inTransaction(() =>
          expect([
            register('x1'),
            register('y1'),
            register('x1'),
            register('x2'),
            register('x1'),
            register('x2'),
            register('x3'),
          ]).toEqual([false, false, false, true, false, false, true]),
        );
        reopen();
        expect(state.collisions()).toEqual(['x1', 'x2', 'x3']);
        expect([state.isCollision('x3'), state.isCollision('x4'), state.isCollision('y1')]).toEqual([
          true,
          false,
          false,
        ]);
        expect([state.isSharedHash(...hashOf('x9')), state.isSharedHash(...hashOf('y1'))]).toEqual([true, false]);
      });

      test('data of the first user move from its hash to its name, and are its own from then on', () => {
        const meta = { isTombstoned: true, discardPoint: 0 };
        inTransaction(() => {
          register('x1');
          setOriginal('x1', { ...ACTIVE, truncateBefore: TOMBSTONE });
          state.setMetastream('x1', ...hashOf('x1'), meta);
        });
        inTransaction(() => register('x2'));
        reopen();
        expect(original('x1')).toEqual({ ...ACTIVE, truncateBefore: TOMBSTONE });
        expect(metastream('x1')).toEqual(meta);
        expect([
          original('x2'),
          metastream('x2'),
          state.originalByHash(...hashOf('x1')),
          state.metastreamByHash(...hashOf('x1')),
        ]).toEqual([undefined, undefined, undefined, undefined]);
        inTransaction(() => setOriginal('x2', { ...ACTIVE, maxCount: 9 }));
        expect([original('x1')?.maxCount, original('x2')?.maxCount]).toEqual([3, 9]);
      });

      test('more names than the cache holds', () => {
        const names = Array.from({ length: 300 }, (_, i) => String.fromCharCode(0x4e00 + i));
        inTransaction(() => {
          for (const name of names) expect(register(name)).toBe(false);
        });
        reopen();
        inTransaction(() => {
          for (const name of [...names, ...names.toReversed()]) expect(register(name)).toBe(false);
        });
        inTransaction(() => {
          for (const name of names) expect(register(`${name}2`)).toBe(true);
        });
        expect(state.collisions()).toEqual(names.flatMap((name) => [name, `${name}2`]));
      });
    });

    describe('streams', () => {
      test.each<[string, OriginalStreamData]>([
        [
          'nothing set',
          {
            isTombstoned: false,
            maxAge: null,
            maxCount: null,
            truncateBefore: null,
            discardPoint: 0,
            maybeDiscardPoint: 0,
            status: 0,
          },
        ],
        [
          'everything set',
          {
            isTombstoned: true,
            maxAge: 86_400,
            maxCount: 1,
            truncateBefore: 0,
            discardPoint: 5,
            maybeDiscardPoint: 6,
            status: 2,
          },
        ],
        [
          'large numbers',
          {
            isTombstoned: false,
            maxAge: 2 ** 40,
            maxCount: 2 ** 52,
            truncateBefore: TOMBSTONE,
            discardPoint: TOMBSTONE - 1,
            maybeDiscardPoint: TOMBSTONE,
            status: 3,
          },
        ],
      ])('%s, by hash and by name', (_name, data) => {
        inTransaction(() => {
          register('x1');
          register('x2');
          setOriginal('x1', data);
          setOriginal('y', data);
        });
        reopen();
        expect([original('x1'), original('y'), state.originalByHash(...hashOf('y'))]).toEqual([data, data, data]);
      });

      test('the outcome of a calculation changes three members', () => {
        const data: OriginalStreamData = {
          isTombstoned: true,
          maxAge: 1,
          maxCount: 2,
          truncateBefore: 3,
          discardPoint: 4,
          maybeDiscardPoint: 5,
          status: 1,
        };
        inTransaction(() => {
          register('x1');
          register('x2');
          setOriginal('x1', data);
          setOriginal('y', data);
          state.setCalculated({ kind: 'id', name: 'x1' }, 2, 7, TOMBSTONE);
          state.setCalculated(handleOf('y'), 3, 8, 9);
          state.setCalculated(handleOf('z'), 3, 8, 9);
        });
        expect(original('x1')).toEqual({ ...data, status: 2, discardPoint: 7, maybeDiscardPoint: TOMBSTONE });
        expect(original('y')).toEqual({ ...data, status: 3, discardPoint: 8, maybeDiscardPoint: 9 });
        expect(original('z')).toBeUndefined();
      });

      test('discard points are forgotten of all but tombstoned ones, which are calculated anew', () => {
        const data: OriginalStreamData = {
          isTombstoned: false,
          maxAge: 1,
          maxCount: 2,
          truncateBefore: 3,
          discardPoint: 4,
          maybeDiscardPoint: 5,
          status: 3,
        };
        inTransaction(() => {
          for (const name of ['x1', 'x2', 'x3']) register(name);
          for (const name of ['x1', 'x3', 'y']) setOriginal(name, data);
          for (const name of ['x2', 'z']) setOriginal(name, { ...data, isTombstoned: true, status: 2 });
        });
        state.begin();
        state.forgetDiscardPoints();
        expect(original('y')).toMatchObject({ discardPoint: 0 });
        state.rollback();
        expect(original('y')).toEqual(data);
        inTransaction(() => state.forgetDiscardPoints());
        reopen();
        for (const name of ['x1', 'x3', 'y'])
          expect(original(name)).toEqual({ ...data, discardPoint: 0, maybeDiscardPoint: 0, status: 1 });
        for (const name of ['x2', 'z']) expect(original(name)).toEqual({ ...data, isTombstoned: true, status: 2 });
      });

      test('the stored checkpoint is read without opening, beside one that writes', () => {
        expect(states.storedCheckpoint(STATE_OPTIONS)).toBeNull();
        inTransaction(() => {});
        expect(states.storedCheckpoint(STATE_OPTIONS)).toEqual(DONE);
        state.begin();
        expect(states.storedCheckpoint(STATE_OPTIONS)).toEqual(DONE);
        state.commit({ ...DONE, stage: 'Cleaning' });
        state.close();
        expect(states.storedCheckpoint(STATE_OPTIONS)).toEqual({ ...DONE, stage: 'Cleaning' });
        state = states.open(STATE_OPTIONS);
      });

      test('active ones come by name, then by signed hash, from anywhere in any number', () => {
        const random = new Random(5);
        const named = ['x', 'xa', 'x\uffe0', 'x𝄞', 'xÄ', 'x b'];
        const hashed = Array.from({ length: 60 }, () => String.fromCharCode(0x100 + random.int(0, 5_000)));
        inTransaction(() => {
          for (const name of [...named, ...hashed]) register(name);
          for (const name of [...named, ...hashed]) setOriginal(name, ACTIVE);
          setOriginal('xb', { ...ACTIVE, status: 2 });
          setOriginal('q', { ...ACTIVE, status: 3 });
          setOriginal('r', { ...ACTIVE, status: 0 });
        });
        const all = state.activeOriginals(null, 1_000);
        const byHash = all.slice(named.length).map(({ handle }) => signed(handle));
        expect(all.slice(0, named.length).map(({ handle }) => handle)).toEqual(
          named.toSorted(compareCodePoints).map((name) => ({ kind: 'id', name })),
        );
        expect(byHash).toEqual(
          [...new Set(hashed.map((name) => signed(handleOf(name))))].toSorted((a, b) => Number(a - b)),
        );
        expect(byHash[0]! < 0n && byHash.at(-1)! > 0n).toBe(true);
        for (const limit of [1, 4, 7]) {
          const read = [];
          for (
            let batch = state.activeOriginals(null, limit);
            batch.length > 0;
            batch = state.activeOriginals(batch.at(-1)!.handle, limit)
          ) {
            expect(batch.length).toBeLessThanOrEqual(limit);
            read.push(...batch);
          }
          expect(read).toEqual(all);
        }
      });

      test('the least and the greatest hash are found, and nothing lies behind the greatest', () => {
        const least: StreamHandle = { kind: 'hash', hi: 0x8000_0000, lo: 0 };
        const greatest: StreamHandle = { kind: 'hash', hi: 0x7fff_ffff, lo: 0xffff_ffff };
        inTransaction(() => {
          state.setOriginal('greatest', greatest.hi, greatest.lo, ACTIVE);
          state.setOriginal('least', least.hi, least.lo, ACTIVE);
        });
        expect(state.activeOriginals(null, 5).map(({ handle }) => handle)).toEqual([least, greatest]);
        expect(state.activeOriginals(least, 5).map(({ handle }) => handle)).toEqual([greatest]);
        expect(state.activeOriginals(greatest, 5)).toEqual([]);
      });

      test('cleaning deletes by status, stored by name or by hash', () => {
        const statuses = [0, 1, 2, 3] as const;
        inTransaction(() => {
          for (const status of statuses) {
            register(`x${status}`);
            setOriginal(String(status), { ...ACTIVE, status });
          }
          for (const status of statuses) setOriginal(`x${status}`, { ...ACTIVE, status });
          for (const name of ['x1', 'y'])
            state.setMetastream(name, ...hashOf(name), { isTombstoned: false, discardPoint: 2 });
        });
        inTransaction(() => {
          state.deleteOriginals([2, 3]);
          state.deleteMetastreams();
        });
        expect(statuses.map((status) => [original(`x${status}`)?.status, original(String(status))?.status])).toEqual([
          [0, 0],
          [1, 1],
          [undefined, undefined],
          [undefined, undefined],
        ]);
        expect([metastream('x1'), metastream('y')]).toEqual([undefined, undefined]);
        expect(state.collisions()).toHaveLength(4);
      });

      test('a name of any characters', () => {
        const names = ['$$a b', 'Köln', '𝄞𝄞', 'n'.repeat(70_000), "quote's", 'line\nbreak'];
        inTransaction(() => {
          for (const name of names) {
            expect(register(name)).toBe(false);
            expect(register(`${name}!`)).toBe(true);
            setOriginal(name, ACTIVE);
          }
        });
        reopen();
        expect(state.collisions()).toEqual(names.flatMap((name) => [name, `${name}!`]).toSorted(compareCodePoints));
        expect(state.activeOriginals(null, 100).map(({ handle }) => handle)).toEqual(
          names.toSorted(compareCodePoints).map((name) => ({ kind: 'id', name })),
        );
      });
    });

    describe('chunks', () => {
      test('a time range only widens, to the tick', () => {
        inTransaction(() => {
          state.setChunkTimeRange(3, 1_795_000_000_000, 1_795_000_000_000, 17, 17);
          state.setChunkTimeRange(3, 1_795_000_000_000, 1_795_000_000_001, 16, 0);
          state.setChunkTimeRange(3, 1_795_000_000_000, 1_795_000_000_000, 18, 9_999);
          state.setChunkTimeRange(4, -62_135_596_800_000, 253_402_300_799_999, 0, 9_999);
        });
        expect(state.chunkTimeRange(3)).toEqual({
          minMs: 1_795_000_000_000,
          minTicks: 16,
          maxMs: 1_795_000_000_001,
          maxTicks: 0,
        });
        expect(state.chunkTimeRange(4)).toEqual({
          minMs: -62_135_596_800_000,
          minTicks: 0,
          maxMs: 253_402_300_799_999,
          maxTicks: 9_999,
        });
        expect(state.chunkTimeRange(5)).toBeUndefined();
      });

      test('milliseconds with a fraction are taken as ticks', () => {
        inTransaction(() => state.setChunkTimeRange(0, 100.25, 200.99999));
        expect(state.chunkTimeRange(0)).toEqual({ minMs: 100, minTicks: 2_500, maxMs: 201, maxTicks: 0 });
      });

      test('weights add up over chunks and are reset by range', () => {
        inTransaction(() => {
          for (let chunk = 0; chunk < 6; chunk++) state.addWeight(chunk, chunk);
          state.addWeight(2, 0.5);
        });
        expect([state.weight(0, 5), state.weight(2, 3), state.weight(9, 9)]).toEqual([15.5, 5.5, 0]);
        inTransaction(() => state.resetWeights(2, 4));
        expect([state.weight(0, 5), state.allWeightsZero()]).toEqual([6, false]);
        inTransaction(() => {
          state.resetWeights(5, 5);
          state.addWeight(1, -1);
        });
        expect(state.allWeightsZero()).toBe(true);
      });
    });
  });
}
