import { describe, expect, it } from 'vitest';
import { ensureNodeId, NODE_ID_FILE, readNodeId, renewNodeId } from '../../core/store/format/node-id.ts';
import { MOMENTS } from '../support/crash-run.ts';
import { FaultyStorage } from '../support/faulty-storage.ts';
import { SeededIds } from '../support/seeded-ids.ts';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

async function written(text: string): Promise<FaultyStorage> {
  const storage = new FaultyStorage();
  const file = await storage.create(NODE_ID_FILE);
  await file.writeAt(0, new TextEncoder().encode(text));
  await file.sync();
  await file.close();
  return storage;
}

describe('the id of a data directory', () => {
  it('is made once, kept, and renewed when asked', async () => {
    const storage = new FaultyStorage();
    expect(await readNodeId(storage)).toBe(null);
    const id = await ensureNodeId(storage, new SeededIds(1));
    expect(id).toMatch(UUID);
    expect(await ensureNodeId(storage, new SeededIds(2))).toBe(id);
    expect(await readNodeId(storage)).toBe(id);
    const file = await storage.open(NODE_ID_FILE, 'read');
    expect(new TextDecoder().decode(await file.read(0, 100))).toBe(`${id}\n`);
    const next = await renewNodeId(storage, new SeededIds(2));
    expect(next).toMatch(UUID);
    expect(next).not.toBe(id);
    expect(await readNodeId(storage)).toBe(next);
    expect(await storage.list('')).toEqual([NODE_ID_FILE]);
  });

  it.each([
    '',
    'no uuid\n',
    '01234567-89ab-cdef-0123-456789abcde\n',
    `01234567-89ab-cdef-0123-456789abcdef${' '.repeat(100)}`,
  ])('is refused when the file holds %j', async (text) => {
    const storage = await written(text);
    await expect(readNodeId(storage)).rejects.toMatchObject({
      code: 'checkpoint_corrupt',
      data: { file: NODE_ID_FILE },
    });
    await expect(ensureNodeId(storage, new SeededIds(1))).rejects.toMatchObject({ code: 'checkpoint_corrupt' });
  });

  it('is the old one or the new one after a crash at any operation', async () => {
    const before = new FaultyStorage();
    const old = await ensureNodeId(before, new SeededIds(1));
    const undisturbed = before.restart('keep');
    const renewed = await renewNodeId(undisturbed, new SeededIds(2));
    for (let n = 1; n <= undisturbed.operations; n++) {
      for (const moment of MOMENTS) {
        const storage = before.restart('keep');
        storage.crashAt(n, moment);
        await expect(renewNodeId(storage, new SeededIds(2))).rejects.toMatchObject({ code: 'storage_crashed' });
        for (const mode of ['partial', 'clean'] as const) {
          const after = storage.restart(mode, n);
          expect([old, renewed]).toContain(await readNodeId(after));
          expect(await renewNodeId(after, new SeededIds(2))).toBe(renewed);
          expect(await readNodeId(after.restart('drop'))).toBe(renewed);
        }
      }
    }
  });
});
