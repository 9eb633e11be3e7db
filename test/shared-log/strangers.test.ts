import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { expect, test } from 'vitest';
import { Registry } from '../../core/cluster/membership/member-registry.ts';
import { openObjectStore } from '../../core/shared-log/shared-log.ts';
import { verifyObjects } from '../../core/shared-log/verify/verify.ts';
import { ObjectFailures } from '../../core/shared-log/shared-failures/shared-failures.ts';
import { LEFTOVERS_EVERY } from '../../core/shared-log/sweep/sweep.ts';
import { silentLog } from '../../core/ports/log.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { logStrangersOnce } from '../../core/ports/object-kinds.ts';
import { ANY } from '../../core/streams/api.ts';
import { DirectoryObjects } from '../../infra/objects/directory-objects.ts';
import { readWholeStream } from '../support/oracle.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { AutoClock } from './auto-clock.ts';
import { compactionTick, eventsOf, worldOf } from './tick-kit.ts';

/** What others leave below the prefix of a log: it stops no instance and no tick, and no sweep takes it. */

const SYSTEM = [
  '.DS_Store',
  'Thumbs.db',
  'desktop.ini',
  '._x',
  '.nfs00000000000a1b2c00000001',
  'README.md',
  '0',
  'zzz',
  'x.tmp',
];
/** Names that are nearly ours. */
const NEARLY = [
  'log/0000000000000000001',
  'log/000000000000000000001',
  'log/00000000000000000003.tmp',
  'log/99999999999999999999',
  'log/0000000000000000000a',
  'manifest/99999999999999',
  'manifest/9999999999999990',
  'manifest/999999999999990.bak',
  'files/00000000-0000-4000-8000-00000000000',
  'files/00000000-0000-4000-8000-00000000000A',
  'files/00000000-0000-4000-8000-000000000001.tmp',
  'control/start-x',
  'control/stop-00000000-0000-4000-8000-000000000001.bak',
  'control/backup.bak',
  'failures/1/x/0',
  'failures/1/00000000000000000000000000000000/0.tmp',
  'nodes/m_3a1.bak',
];
const STRANGERS = [
  ...['', 'log/', 'manifest/', 'files/', 'control/', 'failures/', 'failures/1/', 'nodes/', 'notes/'].flatMap((folder) =>
    SYSTEM.map((name) => folder + name),
  ),
  ...NEARLY,
];
const BYTES = new TextEncoder().encode("somebody else's");
const STEP_MS = 300_000;

test('strangers below the prefix of a log stop no append, no cold start, no tick and no check, and stay', async () => {
  const clock = new AutoClock();
  const objects = new MemoryObjects({ clock });
  await compactionTick(worldOf(objects, clock, 1));
  for (const key of STRANGERS) await objects.put(key, BYTES);
  const told: string[] = [];
  const onStrangers = logStrangersOnce((message) => told.push(message));
  const writer = await openObjectStore(worldOf(objects, clock, 2));
  const ids = new SeededIds(3);
  let written = 0;
  for (let round = 0; round < LEFTOVERS_EVERY + 4; round++) {
    clock.advance(STEP_MS);
    for (let i = 0; i < 2; i++) {
      await writer.store.append('a', ANY, eventsOf(ids, 1, 100));
      written++;
    }
    if (round % 16 === 0) {
      // Commits are in the tail, and others are in files.
      const reader = await openObjectStore(worldOf(objects, clock, 50 + round));
      expect(await readWholeStream(reader.store, 'a', 'forward', 1_000)).toHaveLength(written);
      await reader.close();
    }
    await compactionTick({ ...worldOf(objects, clock, 100 + round), onStrangers });
  }
  await writer.close();
  expect(told).toHaveLength(1);
  const failures = new ObjectFailures(worldOf(objects, clock, 4));
  expect(await failures.add('someone', '192.0.2.1')).toBe(false);
  expect(await new Registry(objects, silentLog).list()).toEqual([]);
  const said: { readonly kind: string; readonly code: string }[] = [];
  const check = verifyObjects({ world: worldOf(objects, clock, 5), scratch: new MemoryStorage() });
  let next = await check.next();
  for (; next.done !== true; next = await check.next()) if (next.value.kind !== 'progress') said.push(next.value);
  expect(next.value).toMatchObject({ errors: 0, unnamed: 0 });
  expect(new Set(said.map(({ kind, code }) => `${kind} ${code}`))).toEqual(new Set(['note stranger']));
  for (const key of STRANGERS) expect(await objects.get(key), key).toEqual(BYTES);
});

test('strangers among the temporary files of a directory stay, however old', async () => {
  const root = mkdtempSync(path.join(tmpdir(), 'skua-strangers-'));
  try {
    mkdirSync(path.join(root, '.tmp'));
    const ours = '00000000-0000-4000-8000-000000000001';
    for (const name of ['.DS_Store', 'notes.txt', `${ours}.bak`, ours])
      writeFileSync(path.join(root, '.tmp', name), 'x');
    const objects = new DirectoryObjects({ root, nowMs: () => Date.now() + 10 * 86_400_000 });
    await objects.put('a', BYTES);
    await objects.close();
    expect(
      ['.DS_Store', 'notes.txt', `${ours}.bak`, ours].map((name) => existsSync(path.join(root, '.tmp', name))),
    ).toEqual([true, true, true, false]);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
});
