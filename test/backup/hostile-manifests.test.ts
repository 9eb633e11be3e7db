import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Repository } from '../../core/backup/repository/api.ts';
import type { Manifest, ManifestFile } from '../../core/backup/format/snapshot-manifest.ts';
import { manifestKey } from '../../core/backup/repository/manifests.ts';
import { restoreBackup } from '../../core/backup/restore/restore.ts';
import { verifyRepository } from '../../core/backup/verify/verify.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { listAll } from '../../core/ports/object-store.ts';
import { DirectoryObjects } from '../../infra/objects/directory-objects.ts';
import { ran } from '../local/spawn.ts';
import { playHistory } from '../support/backup/restore-history.ts';
import { restoreOptions } from '../support/backup/restore-kit.ts';
import { openTestRepository } from '../support/backup/test-repository.ts';

/**
 * Whoever can write to a repository can write manifests with sound checksums. What they name is checked before anything
 * is written.
 */

type Changes = Record<string, unknown>;

const ID = 'eeeeeeee-0000-4000-8000-000000000001';
let folder: string;
let objects: MemoryObjects;
let sound: Manifest;
let secret: { readonly blob: string; readonly sizeBytes: number };

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'skua-hostile-'));
  const history = await playHistory({ seed: 43, parts: 1, writes: 60, scavenges: false });
  ({ objects } = history);
  sound = history.pasts[0]!.manifest;
  secret = await history.repository.writeBlob(5, async function* content() {
    yield new TextEncoder().encode('mine!');
  });
});

afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

/** A file with this name beside those of the index. */
function planted(name: string): Changes {
  return { index: { ...sound.index, files: [...sound.index!.files, { ...secret, path: name }] } };
}

function firstChunk(changes: Changes): Changes {
  return { chunks: [{ ...sound.chunks[0], ...changes }, ...sound.chunks.slice(1)] };
}

function tail(changes: Changes): Changes {
  return { tail: { ...sound.tail, ...changes } };
}

const NAMES = [
  'session.key',
  'node-id',
  'log-id',
  'writer.chk',
  'restoring',
  'skua.lock',
  'skua.lock.owner',
  'chunk-000000.000000',
  '../out',
  '/etc/passwd',
  'index/../../out',
  'index/x',
  'index/.forceverify',
  'index/indexmap.tmp',
  'index',
  'index/',
  '',
  'index/scavenging/scavenging.db',
  'index/scavenging/scavenging.db-wal',
  'proofs/chain',
  'index\\indexmap',
  'index/indexmap\u0000',
  'INDEX/indexmap',
  'index/proven-tables',
  `index/${'a'.repeat(300)}`,
  'index/00000000-0000-0000-0000-00000000000g',
];

/** What is wrong, and the member that the refusal names. */
function* hostile(): Generator<readonly [string, Changes, string]> {
  const next = `index.files[${sound.index!.files.length}].path`;
  for (const name of NAMES) yield [`the index names ${JSON.stringify(name)}`, planted(name), next];
  yield ['the index names a file twice', planted(sound.index!.files[0]!.path), next];
  for (const name of ['session.key', '../scavenging.db', 'index/scavenging/scavenging.db-journal'])
    yield [`the database is ${name}`, { scavengeDb: { ...secret, path: name } }, 'scavengeDb.path'];
  for (const name of ['session.key', 'proofs/../session.key', 'proofs/chain.tmp', 'proofs/leaves-1', 'proofs/'])
    yield [`a proof is ${name}`, { proofs: [{ ...secret, path: name, head: '' }] }, 'proofs[0].path'];
  for (const name of [
    'session.key',
    'chunk-000000.000000.tmp',
    'chunk-0.0',
    '../chunk-000000.000000',
    'chunk-000009.000000',
  ])
    yield [`a chunk is ${name}`, firstChunk({ path: name }), 'chunks[0].path'];
  for (const name of ['session.key', 'chunk-000000.000000', '../x', 7])
    yield [`the tail is ${String(name)}`, tail({ path: name }), 'tail.path'];
  yield ['a chunk is of no size', firstChunk({ sizeBytes: -1 }), 'chunks[0].sizeBytes'];
  yield ['a chunk is larger than all disks', firstChunk({ sizeBytes: 2 ** 52 }), 'chunks[0].sizeBytes'];
  yield ['a chunk ends before it begins', firstChunk({ endNumber: -1 }), 'chunks[0].endNumber'];
  yield ['chunks lie on one another', { chunks: [sound.chunks[0], sound.chunks[0]] }, 'chunks[1].startNumber'];
  yield ['a chunk is in no blob', firstChunk({ blob: '../../skua-repository' }), 'chunks[0].blob'];
  yield ['the tail has no header', tail({ header: '00' }), 'tail.header'];
  yield ['the tail is elsewhere', tail({ number: 300 }), 'tail.number'];
  yield [
    'the pieces of the tail have a gap',
    tail({ segments: [{ ...sound.tail!.segments[0], from: sound.tail!.segments[0]!.from + 1 }] }),
    'tail.segments[0]',
  ];
  yield ['the log ends nowhere', { checkpoints: { ...sound.checkpoints, writer: '5' } }, 'checkpoints.writer'];
  yield ['there are no chunks', { chunks: undefined }, 'chunks'];
  yield ['the chunks are a text', { chunks: 'chunk-000000.000000' }, 'chunks'];
  yield ['chunks have no size', { chunkSizeBytes: 0 }, 'chunkSizeBytes'];
  yield ['a node steers a terminal', { nodeId: '\u001b[2J' }, 'nodeId'];
  yield [
    'there are more files than there can be',
    { index: { ...sound.index, files: Array.from({ length: 50_000 }, () => sound.index!.files[0] as ManifestFile) } },
    'index.files',
  ];
}

/** Puts a manifest that says something else there, behind all others, and takes it away again. */
async function withManifest<T>(
  repository: Repository,
  changes: Changes,
  work: (key: string) => Promise<T>,
): Promise<T> {
  const manifest = { ...sound, id: ID, createdMs: sound.createdMs + 1_000, ...changes };
  const key = manifestKey(manifest);
  await repository.writeObject(key, manifest);
  try {
    return await work(key);
  } finally {
    await repository.removeObjects([key]);
  }
}

describe('a manifest that names what it must not', () => {
  it('is refused before anything is made, by the manifest and the member, in memory and by the command from a directory', async () => {
    const place = path.join(folder, 'repository');
    const directory = new DirectoryObjects({ root: place });
    await directory.begin();
    for await (const { key } of listAll(objects, '')) await directory.put(key, (await objects.get(key))!);
    const inMemory = await openTestRepository(objects, { create: false });
    const onDisk = await openTestRepository(directory, { create: false });
    let i = 0;
    for (const [what, changes, member] of hostile()) {
      await withManifest(inMemory, changes, async (key) => {
        const target = new MemoryStorage();
        const expected = {
          code: 'repository_damaged',
          data: { key, member },
          message: expect.stringContaining(member) as string,
        };
        await expect(
          restoreBackup(restoreOptions(await openTestRepository(objects, { create: false }), target)),
          what,
        ).rejects.toMatchObject(expected);
        await expect(
          restoreBackup(
            restoreOptions(await openTestRepository(objects, { create: false }), target, {
              choice: { kind: 'backup', id: ID },
              force: true,
              allowDamaged: true,
            }),
          ),
          what,
        ).rejects.toMatchObject(expected);
        for (const name of ['', 'index', 'proofs']) expect(await target.list(name), what).toEqual([]);
      });
      // A command is some milliseconds: every third way is enough beside memory.
      if (i++ % 3 !== 0) continue;
      await withManifest(onDisk, changes, async (key) => {
        const db = path.join(folder, `restored-${i}`, 'db');
        const { code, out, err } = await ran(['restore', '--from', place, '--db', db]);
        expect({ code, out }, what).toEqual({ code: 1, out: '' });
        expect(err, what).toContain('repository_damaged');
        expect(err, what).toContain(key);
        expect(err, what).toContain(member);
        expect(existsSync(path.dirname(db)), what).toBe(false);
      });
    }
    expect(readdirSync(folder)).toEqual(['repository']);
    // As it was, it is restored.
    const db = path.join(folder, 'restored');
    expect(await ran(['restore', '--from', place, '--db', db])).toMatchObject({ code: 0, err: '' });
    expect(existsSync(path.join(db, 'writer.chk'))).toBe(true);
  });

  it('is passed over where damage may be, found by a check, and stops a prune', async () => {
    const repository = await openTestRepository(objects, { create: false });
    await withManifest(repository, planted('session.key'), async (key) => {
      const target = new MemoryStorage();
      const report = await restoreBackup(restoreOptions(repository, target, { allowDamaged: true }));
      expect(report).toMatchObject({
        backupId: sound.id,
        warnings: [expect.stringContaining(key), expect.stringMatching(`${key} can.t be read, .*redacted`)],
      });
      expect(await target.list('')).not.toContain('session.key');
      const findings: unknown[] = [];
      await verifyRepository({ repository, onFinding: (finding) => findings.push(finding) });
      expect(findings).toMatchObject([{ key, kind: 'damaged' }]);
    });
  });
});
