import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { openRepository } from '../../core/backup/repository/repository.ts';
import { openObjectStore } from '../../core/shared-log/shared-log.ts';
import { silentLog } from '../../core/ports/log.ts';
import { silentMeter } from '../../core/ports/meter.ts';
import { ANY } from '../../core/streams/api.ts';
import { handler } from '../../infra/aws/functions/tick.ts';
import { systemClock } from '../../infra/system-clock.ts';
import { nodeCompression } from '../../infra/node-compression.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { systemIds } from '../../infra/system-ids.ts';
import { nodeKeys } from '../../infra/node-keys.ts';
import { DirectoryObjects } from '../../infra/objects/directory-objects.ts';
import { skua } from '../local/spawn.ts';

/** The function of ticks as it is deployed, over directories. */

const KEY = '0123456789abcdef'.repeat(4);

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'skua-tick-backup-'));
  vi.stubEnv('SERVER_STORAGE', path.join(folder, 'store'));
  vi.stubEnv('SERVER_INSECURE', 'true');
  vi.stubEnv('SERVER_LOG_LEVEL', 'Off');
  vi.stubEnv('SERVER_BACKUP__REPOSITORY', path.join(folder, 'backups'));
  vi.stubEnv('SERVER_BACKUP__KEY', KEY);
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await rm(folder, { recursive: true, force: true });
});

it('backs the store up, under the key of its environment, and not again within the hour', async () => {
  const world = {
    objects: new DirectoryObjects({ root: path.join(folder, 'store') }),
    clock: systemClock,
    ids: systemIds,
    digests: nodeDigests,
    log: silentLog,
    meter: silentMeter,
  };
  const instance = await openObjectStore(world, { chunkSizeBytes: 131_072 });
  const events = Array.from({ length: 20 }, (_, i) => ({
    id: `00000000-0000-4000-8000-${String(i).padStart(12, '0')}`,
    type: 'T',
    isJson: false,
    data: new Uint8Array(1_000),
    metadata: new Uint8Array(0),
  }));
  await instance.store.append('some', ANY, events);
  const context = { awsRequestId: 'r', getRemainingTimeInMillis: () => 60_000 };
  await handler({}, context);
  await instance.store.append('some', ANY, [{ ...events[0]!, id: '00000000-0000-4000-8000-00000000aaaa' }]);
  await handler({}, context);
  await instance.close();
  await world.objects.close();
  const repositoryWorld = {
    clock: systemClock,
    ids: systemIds,
    digests: nodeDigests,
    keys: nodeKeys,
    compression: nodeCompression,
  };
  const options = { key: new Uint8Array(Buffer.from(KEY, 'hex')), create: false, compression: 'auto' } as const;
  const repository = await openRepository(
    new DirectoryObjects({ root: path.join(folder, 'backups') }),
    options,
    repositoryWorld,
  );
  expect(await repository.backups()).toMatchObject([{ cause: 'scheduled' }]);
  await repository.close();
  await expect(
    openRepository(
      new DirectoryObjects({ root: path.join(folder, 'backups') }),
      { ...options, key: null },
      repositoryWorld,
    ),
  ).rejects.toMatchObject({ code: 'repository_key' });
  expect(await readdir(path.join(folder, 'store', 'control')).catch(() => [])).toEqual([]);
  await writeFile(path.join(folder, 'key'), KEY);
  const db = path.join(folder, 'db');
  expect(
    await skua(['restore', '--from', path.join(folder, 'backups'), '--key-file', path.join(folder, 'key'), '--db', db])
      .ended,
  ).toMatchObject({ code: 0 });
  expect(await skua(['verify', db]).ended).toMatchObject({ code: 0 });
});
