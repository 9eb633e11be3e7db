import { expect, test } from 'vitest';
import { CountingObjects } from '../support/counting-objects.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import { openObjects } from '../../infra/objects/open-objects.ts';
import { s3ForTests } from '../support/s3/s3-for-tests.ts';

const bytes = (length: number) => new Uint8Array(length);
async function* content(length: number) {
  yield bytes(length);
}

test('requests are counted by kind, and bytes both ways', async () => {
  const objects = new CountingObjects(new MemoryObjects());
  await objects.put('a', bytes(10));
  await objects.create('b', bytes(5));
  await objects.create('b', bytes(5));
  await objects.get('a');
  await objects.get('a', { from: 2, length: 3 });
  await objects.get('none');
  await objects.head('a');
  await objects.list('');
  await objects.upload('c', 100, content(100));
  await objects.remove(['a', 'b']);
  expect(objects.counts()).toEqual({
    gets: 3,
    heads: 1,
    puts: 4,
    lists: 1,
    deletes: 1,
    parts: 0,
    multiparts: 0,
    bytesIn: 120,
    bytesOut: 13,
  });
  objects.reset();
  await objects.remove(Array.from({ length: 1_001 }, (_, n) => `k${n}`));
  expect(objects.counts()).toMatchObject({ deletes: 2, puts: 0, bytesIn: 0 });
});

test('a large upload counts as the requests that it costs at a server', async () => {
  const s3 = await s3ForTests('in-process');
  const objects = new CountingObjects(await openObjects(s3.place()));
  const size = 20 * 1_048_576;
  await objects.upload('k', size, content(size));
  expect(objects.counts()).toMatchObject({ puts: 0, parts: 3, multiparts: 2, bytesIn: size });
  await objects.close();
  await s3.close();
});
