import { describe, expect, it } from 'vitest';
import { restoreBackup } from '../../core/backup/restore/restore.ts';
import { restoreCopy } from '../../core/backup/restore-copy/restore-copy.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import { copy } from '../backup/copy-kit.ts';
import { backUpNode } from '../support/backup/backup-kit.ts';
import { openTestRepository } from '../support/backup/test-repository.ts';
import { backUp, restoreOptions, restoreWorld, verifyErrors } from '../support/backup/restore-kit.ts';
import { Random } from '../support/random.ts';
import { fill, openProven, scavenge, verify } from './proof-kit.ts';
import { contentOf } from '../log/kit.ts';

const KEPT = ['kept', 'short', 'other'];

describe('backups of a directory with a chain', () => {
  it('carry it: what is restored verifies against the anchors of its time, and goes on with the chain', async () => {
    const storage = new MemoryStorage();
    const repository = await openTestRepository(new MemoryObjects());
    const random = new Random(31);
    let open = await openProven(storage);
    await fill(open, random, 900);
    await open.store.deleteStream('gone', -2, 'hard');
    await scavenge(open);
    const anchors = [await open.hashChain!.anchor()];
    await open.close();
    const first = await backUp(storage, repository, 1);
    open = await openProven(storage);
    await fill(open, random, 500, KEPT);
    anchors.push(await open.hashChain!.anchor());
    await open.close();
    const second = await backUp(storage, repository, 2);
    expect(second.proofs!.length).toBeGreaterThan(first.proofs!.length);
    // What was stored once is named, not read again.
    expect(second.proofs!.slice(0, first.proofs!.length).map(({ blob }) => blob)).toEqual(
      expect.arrayContaining(first.proofs!.filter(({ path }) => path.includes('leaves')).map(({ blob }) => blob)),
    );

    const latest = new MemoryStorage();
    await restoreBackup(restoreOptions(repository, latest));
    expect(await verify(latest, anchors, true)).toMatchObject({ findings: 0, anchors: 2, notes: [] });
    const older = new MemoryStorage();
    await restoreBackup(restoreOptions(repository, older, { choice: { kind: 'backup', id: first.id } }));
    expect(await verify(older, [anchors[0]!], true)).toMatchObject({ findings: 0, anchors: 1, notes: [] });
    expect((await verify(older, anchors)).told.map(({ code }) => code)).toContain('cut');
    const again = await openProven(latest);
    await fill(again, random, 300, KEPT);
    await scavenge(again);
    anchors.push(await again.hashChain!.anchor());
    await again.close();
    expect(await verify(latest, anchors, true)).toMatchObject({ findings: 0, anchors: 3, notes: [] });
    expect(await verifyErrors(latest)).toEqual([]);
  });

  it('restored to an earlier position, the chain is cut there, and another history follows', async () => {
    const storage = new MemoryStorage();
    const repository = await openTestRepository(new MemoryObjects());
    const random = new Random(32);
    const open = await openProven(storage);
    await fill(open, random, 300);
    const early = await open.hashChain!.anchor();
    await fill(open, random, 900);
    const late = await open.hashChain!.anchor();
    await open.close();
    await backUp(storage, repository, 1);
    const target = new MemoryStorage();
    await restoreBackup(restoreOptions(repository, target, { choice: { kind: 'position', position: early.position } }));
    expect(await verify(target, [early], true)).toMatchObject({ findings: 0, anchors: 1 });
    const again = await openProven(target);
    await fill(again, random, 700);
    await scavenge(again);
    const other = await again.hashChain!.anchor();
    await again.close();
    expect(other.receipts).toBeGreaterThan(1);
    expect(await verify(target, [early, other], true)).toMatchObject({ findings: 0, anchors: 2 });
    expect((await verify(target, [late])).told.map(({ code }) => code)).toContain('chain');
  });

  it('are made beside a running node', async () => {
    const storage = new MemoryStorage();
    const repository = await openTestRepository(new MemoryObjects());
    const open = await openProven(storage);
    await fill(open, new Random(33), 900);
    await scavenge(open);
    const anchor = await open.hashChain!.anchor();
    await backUpNode(open, repository);
    await open.close();
    const target = new MemoryStorage();
    await restoreBackup(restoreOptions(repository, target));
    expect(await verify(target, [anchor], true)).toMatchObject({ findings: 0, anchors: 1, notes: [] });
  });

  it('as plain copies carry it too, full and differential, and are restored with it', async () => {
    const storage = new MemoryStorage();
    const target = new MemoryStorage();
    const random = new Random(34);
    let open = await openProven(storage);
    await fill(open, random, 900);
    const anchors = [await open.hashChain!.anchor()];
    await open.close();
    await copy(storage, target, 'full');
    expect(await verify(target, anchors)).toMatchObject({ findings: 0, notes: [] });
    open = await openProven(storage);
    await fill(open, random, 300);
    await scavenge(open);
    anchors.push(await open.hashChain!.anchor());
    await open.close();
    const report = await copy(storage, target, 'differential');
    expect(report.kept).toBeGreaterThan(0);
    expect(await verify(target, anchors, true)).toMatchObject({ findings: 0, anchors: 2, notes: [] });
    for (const name of await storage.list('proofs'))
      expect(await contentOf(target, `proofs/${name}`)).toEqual(await contentOf(storage, `proofs/${name}`));
    const restored = new MemoryStorage();
    await restoreCopy({ ...restoreWorld(restored), source: target, place: '/backup' });
    expect(await verify(restored, anchors, true)).toMatchObject({ findings: 0, anchors: 2, notes: [] });
  });
});
