import { describe, expect, it } from 'vitest';
import { restoreBackup } from '../../core/backup/restore/restore.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { CHUNK_BYTES, endOf, endsWrite, playHistory, servedBy } from '../support/backup/restore-history.ts';
import { backUp, restoreOptions, verifyErrors } from '../support/backup/restore-kit.ts';
import { openTestRepository } from '../support/backup/test-repository.ts';
import { installFiles, unpackSet } from '../support/fixtures.ts';
import { Random } from '../support/random.ts';
import { readRawLog } from '../scavenge/raw-log.ts';

const POINTS = 24;

describe('a restore to a position', () => {
  it.each([1, 2, 3, 4, 5, 6])('gives exactly the log up to it, or names the nearest places, seed %d', async (seed) => {
    const history = await playHistory({ seed, parts: 4 });
    const { repository, pasts, universe } = history;
    const end = pasts.at(-1)!.manifest.checkpoints.writer;
    const random = new Random(seed);
    const ends = [...universe.values()].map(endOf);
    const boundaries = Array.from({ length: Math.floor(end / CHUNK_BYTES) }, (_, i) => (i + 1) * CHUNK_BYTES);
    const places = [...new Set([...[...universe.values()].filter(endsWrite).map(endOf), ...boundaries, end])].filter(
      (place) => servedBy(history, place) !== null,
    );
    const wanted = [
      ...boundaries,
      end,
      end + 1,
      ...Array.from({ length: POINTS }, (_, i) =>
        i % 2 === 0 ? random.pick(places) : random.pick(ends) - random.pick([0, 0, 0, 1, 8]),
      ),
    ];
    let refused = 0;
    for (const position of wanted) {
      const past = servedBy(history, position);
      const target = new MemoryStorage();
      const restoring = restoreBackup(restoreOptions(repository, target, { choice: { kind: 'position', position } }));
      if (past === null) {
        refused++;
        const below = Math.max(...places.filter((place) => place < position), -1);
        const above = Math.min(...places.filter((place) => place > position));
        await expect(restoring, `position ${position}`).rejects.toMatchObject({
          code: 'not_restorable',
          data: { position, below: below < 0 ? null : below, above: above === Infinity ? null : above },
        });
        expect(await target.list(''), 'nothing was changed').toEqual([]);
        continue;
      }
      const report = await restoring;
      expect(report).toMatchObject({ backupId: past.manifest.id, position, skipped: [] });
      const before = new Set(
        pasts
          .findLast(({ manifest }) => manifest.checkpoints.writer <= position)
          ?.manifest.chunks.map(({ blob }) => blob) ?? [],
      );
      const isChanged =
        position < past.manifest.checkpoints.writer &&
        past.manifest.chunks.some(
          ({ isScavenged, endNumber, blob }) =>
            isScavenged && (endNumber + 1) * CHUNK_BYTES <= position && !before.has(blob),
        );
      expect(report.warnings.length, 'chunks that were scavenged later are warned of').toBe(isChanged ? 1 : 0);
      expect((await readRawLog(target)).map((record) => [record.position, record.bytes])).toEqual(
        past.records.filter((record) => record.position < position).map((record) => [record.position, record.bytes]),
      );
      expect(await verifyErrors(target), `position ${position}`).toEqual([]);
    }
    expect(refused).toBeGreaterThan(0);
    expect(wanted.length - refused).toBeGreaterThan(POINTS / 2);
  });

  it('inside an explicit transaction leaves it without its commit, which is nothing to a reader', async () => {
    const source = new MemoryStorage();
    await installFiles(source, unpackSet('transactions-1-before'));
    const repository = await openTestRepository(new MemoryObjects(), { frameBytes: 1_048_576 });
    await backUp(source, repository, 1);
    const records = await readRawLog(source);
    const commits = records.filter(({ bytes }) => bytes.charCodeAt(0) === 1);
    expect(commits.length).toBeGreaterThan(1);
    for (const { position } of commits) {
      const target = new MemoryStorage();
      await restoreBackup(restoreOptions(repository, target, { choice: { kind: 'position', position } }));
      expect((await readRawLog(target)).map((record) => record.bytes)).toEqual(
        records.filter((record) => record.position < position).map((record) => record.bytes),
      );
      expect((await verifyErrors(target)).filter((error) => !/misses stream 'tx-/.test(error))).toEqual([]);
    }
  });

  it("of the log of another node than the newest backup's has to name it", async () => {
    const history = await playHistory({ seed: 8, parts: 2 });
    const { repository, pasts } = history;
    const other = {
      ...pasts[0]!.manifest,
      id: 'ffffffff-0000-4000-8000-000000000001',
      nodeId: '99999999-9999-4999-8999-999999999999',
      createdMs: pasts[0]!.manifest.createdMs + 60_000,
    };
    await repository.putManifest(other);
    const position = pasts[1]!.manifest.checkpoints.writer;
    await expect(
      restoreBackup(restoreOptions(repository, new MemoryStorage(), { choice: { kind: 'position', position } })),
    ).rejects.toMatchObject({ code: 'not_restorable', data: { below: other.checkpoints.writer, above: null } });
    expect(
      await restoreBackup(
        restoreOptions(repository, new MemoryStorage(), {
          choice: { kind: 'position', position },
          nodeId: pasts[1]!.manifest.nodeId,
        }),
      ),
    ).toMatchObject({ position });
    await expect(
      restoreBackup(
        restoreOptions(repository, new MemoryStorage(), { nodeId: '11111111-1111-4111-8111-111111111111' }),
      ),
    ).rejects.toMatchObject({ code: 'backup_not_found' });
  });
});
