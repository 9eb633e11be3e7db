import { afterAll, beforeAll, describe } from 'vitest';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CountingObjects } from '../support/counting-objects.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import { DirectoryObjects } from '../../infra/objects/directory-objects.ts';
import { openObjects } from '../../infra/objects/open-objects.ts';
import { FaultyObjects } from '../support/faulty-objects.ts';
import type { S3ForTests } from '../support/s3/s3-for-tests.ts';
import { s3ForTests } from '../support/s3/s3-for-tests.ts';
import { describeObjectStore } from './object-store.contract.ts';

const dispose = async () => {};
describeObjectStore('memory', async () => {
  const objects = new MemoryObjects();
  return { objects, other: objects, dispose };
});
describeObjectStore('counting', async () => {
  const objects = new MemoryObjects();
  return { objects: new CountingObjects(objects), other: objects, dispose };
});
describeObjectStore('faulty, without faults', async () => {
  const objects = new MemoryObjects();
  return { objects: new FaultyObjects(objects), other: objects, dispose };
});
for (const only of ['in-process', undefined] as const) {
  describe(only === undefined ? 'a real server where there is one' : 'a server in this process', () => {
    let s3: S3ForTests;
    let uses = 0;
    beforeAll(async () => {
      s3 = await s3ForTests(only);
    });
    afterAll(() => s3.close());
    describeObjectStore('bucket', async () => {
      const place = s3.place(`prefix-${uses++}/of`);
      const [objects, other] = [await openObjects(place), await openObjects(place)];
      return {
        objects,
        other,
        dispose: async () => {
          await objects.close();
          await other.close();
        },
      };
    });
  });
}
for (const isBlocking of [false, true]) {
  describeObjectStore(`directory${isBlocking ? ' of a thread of its own' : ''}`, async () => {
    const folder = await mkdtemp(join(tmpdir(), 'skua-objects-'));
    const root = join(folder, 'objects');
    const [objects, other] = [new DirectoryObjects({ root, isBlocking }), new DirectoryObjects({ root, isBlocking })];
    await objects.begin();
    return {
      objects,
      other,
      dispose: async () => {
        await Promise.all([objects.close(), other.close()]);
        await rm(folder, { recursive: true, force: true });
      },
    };
  });
}
