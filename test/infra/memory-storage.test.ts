import { expect, test } from 'vitest';
import { MemoryStorage, PAGE_BYTES } from '../../core/memory/memory-storage.ts';

test('a sparse file takes no memory until it is written', async () => {
  const storage = new MemoryStorage({ capacityBytes: 100_000 });
  const file = await storage.create('chunk');
  await file.truncate(268_435_456);
  expect(await storage.freeBytes()).toBe(100_000);
  expect((await file.read(200_000_000, 65_536)).every((byte) => byte === 0)).toBe(true);
  await file.writeAt(0, new Uint8Array(10));
  expect(await storage.freeBytes()).toBe(100_000 - 4_096);
});

test('reads come at once, as a view inside a page', async () => {
  const file = await new MemoryStorage().create('a');
  await file.writeAt(0, new Uint8Array(2 * PAGE_BYTES).fill(1));
  const block = file.read(PAGE_BYTES - 65_536, 65_536) as Uint8Array;
  const again = file.read(PAGE_BYTES - 65_536, 65_536) as Uint8Array;
  expect(block.buffer).toBe(again.buffer);
  const across = file.read(PAGE_BYTES - 10, 20) as Uint8Array;
  expect(across).toEqual(new Uint8Array(20).fill(1));
});

test('beyond the capacity: disk_full and nothing changed; space comes back by truncate and by the last close', async () => {
  const storage = new MemoryStorage({ capacityBytes: 8_192 });
  const file = await storage.create('node-id');
  await file.writeAt(0, new Uint8Array(4_096).fill(1));
  expect(() => file.writeAt(0, new Uint8Array(8_193))).toThrow(
    expect.objectContaining({ code: 'disk_full', data: { path: 'node-id', limit: 8_192 } }),
  );
  expect(file.size).toBe(4_096);
  expect((file.read(0, 1) as Uint8Array)[0]).toBe(1);
  await file.writeAt(0, new Uint8Array(8_192));
  expect(await storage.freeBytes()).toBe(0);
  await storage.remove('node-id');
  expect(await storage.freeBytes()).toBe(0);
  await file.truncate(0);
  expect(await storage.freeBytes()).toBe(8_192);
  await file.writeAt(0, new Uint8Array(5_000));
  await file.close();
  expect(await storage.freeBytes()).toBe(8_192);
});
