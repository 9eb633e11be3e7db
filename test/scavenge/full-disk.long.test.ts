import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ANY } from '../../core/streams/api.ts';
import { systemClock } from '../../infra/system-clock.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';
import { systemIds } from '../../infra/system-ids.ts';
import { openTestStore } from '../support/test-store.ts';
import { setMetadata } from './control-kit.ts';
import { bySize } from '../support/run-size.ts';

/**
 * A scavenge that begins with some kilobytes free ends with `disk_full`, and the process lives on: memory that is
 * mapped to a file for which there turns out to be no room kills a process without a word, so that there must be none.
 * Only a real file system shows it.
 */
const SCAVENGER = fileURLToPath(new URL('../support/full-disk-scavenger.ts', import.meta.url));
const IMAGE_BYTES = 8_388_608;
const CHUNK_BYTES = 262_144;
const EVENTS = 200;
/**
 * Small file systems have small blocks, large ones have pages: what is mapped is filled differently. The levels go up
 * by a block.
 */
const DISKS = [
  { blockBytes: 1_024, levels: bySize(16, 16, 40) },
  { blockBytes: 4_096, levels: 12 },
];

/** Images lie in memory where they can: every level syncs a lot. */
const folder = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'skua-full-disk-'));
const template = join(folder, 'template');

/** Why no file system can be mounted here, or null. */
function whyNot(): string | null {
  if (process.platform !== 'linux') return 'only Linux mounts an image';
  const reason = mount('probe', 1_024);
  if (reason === null) unmount('probe');
  return reason;
}

/** Mounts a new file system of its own at `folder/name`; what went wrong, or null. */
function mount(name: string, blockBytes: number): string | null {
  const image = join(folder, `${name}.img`);
  writeFileSync(image, '');
  truncateSync(image, IMAGE_BYTES);
  mkdirSync(join(folder, name));
  for (const [command, ...args] of [
    ['mkfs.ext4', '-q', '-F', '-m', '0', '-b', String(blockBytes), image],
    ['mount', '-o', 'loop', image, join(folder, name)],
  ]) {
    const { status, stderr, error } = spawnSync(command!, args, { encoding: 'utf8' });
    if (status !== 0) return `${command}: ${error?.message ?? stderr}`.trim();
  }
  return null;
}

function unmount(name: string): void {
  const { status, stderr } = spawnSync('umount', [join(folder, name)], { encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
}

const reason = whyNot();

/** Some chunks of which a scavenge removes about half. */
beforeAll(async () => {
  const open = await openTestStore({
    storage: new FilesystemStorage({ root: template }),
    clock: systemClock,
    ids: systemIds,
    chunkSizeBytes: CHUNK_BYTES,
    memTableEntriesMax: 400,
  });
  await setMetadata(open, 'doomed-0', { $maxCount: 1 });
  for (let i = 0; i < EVENTS; i++) {
    const id = `00000000-0000-4000-8000-${String(i).padStart(12, '0')}`;
    await open.store.append(i % 2 === 0 ? 'doomed-0' : `kept-${i}`, ANY, [
      { id, type: 'thing', isJson: false, data: new Uint8Array(5_000).fill(i), metadata: new Uint8Array(0) },
    ]);
  }
  await open.close();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe.skipIf(reason !== null)(`a scavenge on a full disk${reason === null ? '' : ` (skipped: ${reason})`}`, () => {
  test.each(DISKS)(
    'ends with disk_full and goes on when there is room, at every fill level: blocks of $blockBytes bytes',
    async ({ blockBytes, levels }) => {
      const name = `disk-${blockBytes}`;
      expect(mount(name, blockBytes)).toBeNull();
      try {
        const child = spawn(
          process.execPath,
          [
            '--no-warnings',
            SCAVENGER,
            template,
            join(folder, name),
            ...Array.from({ length: levels }, (_, i) => String(i * blockBytes)),
          ],
          { stdio: ['ignore', 'pipe', 'inherit'] },
        );
        let said = '';
        child.stdout.on('data', (data) => {
          said += data;
        });
        const [code, signal] = await new Promise<[number | null, string | null]>((resolve) => {
          child.on('exit', (...how) => resolve(how));
        });
        expect({ code, signal, last: said.trimEnd().split('\n').at(-1)!.slice(0, 200) }).toEqual({
          code: 0,
          signal: null,
          last: expect.stringMatching(/^end /),
        });
        const results = said
          .split('\n')
          .filter((line) => line.startsWith('end '))
          .map((line) => JSON.parse(line.slice(line.indexOf('['))) as { result: string; error: string | null }[]);
        expect(results).toHaveLength(levels);
        for (const [full, roomy] of results) {
          if (full!.result === 'Errored') expect(full!.error).toMatch(/There is no space left/);
          else expect(full!.result).toBe('Success');
          expect(roomy!).toMatchObject({ result: 'Success', error: null });
        }
        expect(results[0]![0]!.result).toBe('Errored');
      } finally {
        unmount(name);
      }
    },
  );
});
