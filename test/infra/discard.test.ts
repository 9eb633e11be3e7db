import {
  chmodSync,
  linkSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { cutsOf, DISCARD_STEP_BYTES, freeBitByBit, GONE } from '../../infra/fs/discard.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'skua-discard-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function file(name: string, size: number): string {
  const at = path.join(folder, name);
  writeFileSync(at, 'x');
  truncateSync(at, size);
  chmodSync(at, 0o444);
  return at;
}

describe('a file that is discarded', () => {
  test('is gone at once when it is small', async () => {
    file('chunk-000000.000000', 1_000);
    await new FilesystemStorage({ root: folder }).discard('chunk-000000.000000');
    expect(readdirSync(folder)).toEqual([]);
  });

  test('has another name at once when it is large, which a start removes', async () => {
    file('chunk-000000.000000', 3 * DISCARD_STEP_BYTES);
    const storage = new FilesystemStorage({ root: folder });
    await storage.discard('chunk-000000.000000');
    expect(await storage.size('chunk-000000.000000')).toBeNull();
    expect(GONE).toMatch(/\.tmp$/);
  });

  test('is freed to the end', async () => {
    await freeBitByBit(file('chunk-000000.000000.gone.tmp', 3 * DISCARD_STEP_BYTES + 5));
    expect(readdirSync(folder)).toEqual([]);
  });

  test('is only removed where it has another name, under which it stays whole', async () => {
    const gone = file('chunk-000000.000000.gone.tmp', 3 * DISCARD_STEP_BYTES);
    linkSync(gone, path.join(folder, 'copy'));
    await freeBitByBit(gone);
    expect(readdirSync(folder)).toEqual(['copy']);
    expect(statSync(path.join(folder, 'copy')).size).toBe(3 * DISCARD_STEP_BYTES);
  });

  test('is only removed where it is a symbolic link: what that leads to stays whole, with its mode', async () => {
    const elsewhere = file('elsewhere', 3 * DISCARD_STEP_BYTES);
    symlinkSync(elsewhere, path.join(folder, 'chunk-000000.000000.gone.tmp'));
    await freeBitByBit(path.join(folder, 'chunk-000000.000000.gone.tmp'));
    expect(readdirSync(folder)).toEqual(['elsewhere']);
    expect(statSync(elsewhere)).toMatchObject({ size: 3 * DISCARD_STEP_BYTES, mode: 0o100444 });
  });

  test('that is not there is no error', async () => {
    await new FilesystemStorage({ root: folder }).discard('chunk-000000.000000');
    await freeBitByBit(path.join(folder, 'absent'));
  });
});

describe('a file that somebody else reads', () => {
  const NAME = 'chunk-000000.000000';
  const BYTES = 3 * DISCARD_STEP_BYTES + 5;
  const openBy = (isBlocking: boolean) => new FilesystemStorage({ root: folder, isBlocking }).open(NAME, 'read');

  test.each([true, false])(
    'tells him that it is gone where it has been cut, and nothing but its bytes elsewhere: blocking %s',
    async (isBlocking) => {
      const at = file(NAME, BYTES);
      const reader = await openBy(isBlocking);
      renameSync(at, `${at}${GONE}`);
      expect(await reader.read(BYTES - 5, 10)).toHaveLength(5);
      await freeBitByBit(`${at}${GONE}`);
      const gone = expect.objectContaining({ code: 'file_not_found', data: { path: NAME } });
      await expect(reader.read(BYTES - 5, 10)).rejects.toEqual(gone);
      await expect(reader.read(DISCARD_STEP_BYTES - 1, 2)).rejects.toEqual(gone);
      expect(() => reader.readNow!(BYTES - 5, 5, new Uint8Array(5), 0)).toThrow(gone);
      expect(await reader.read(DISCARD_STEP_BYTES - 5, 5)).toHaveLength(5);
      // Behind its end there never was anything.
      expect(await reader.read(BYTES, 10)).toHaveLength(0);
      await reader.close();
    },
  );

  test('may become shorter in its place, which is the end of it', async () => {
    const at = file(NAME, 1_000);
    const reader = await openBy(true);
    chmodSync(at, 0o644);
    truncateSync(at, 100);
    expect(await reader.read(0, 1_000)).toHaveLength(100);
    await reader.close();
  });

  test('may get another one in its place, and is read on', async () => {
    const at = file(NAME, 1_000);
    const reader = await openBy(false);
    renameSync(file('other', 10), at);
    expect(await reader.read(0, 2_000)).toHaveLength(1_000);
    await reader.close();
  });

  test('is cut at whole steps only', () => {
    expect(cutsOf(BYTES)).toEqual([3 * DISCARD_STEP_BYTES, 2 * DISCARD_STEP_BYTES, DISCARD_STEP_BYTES]);
    expect(cutsOf(2 * DISCARD_STEP_BYTES)).toEqual([DISCARD_STEP_BYTES]);
    expect([cutsOf(DISCARD_STEP_BYTES), cutsOf(1), cutsOf(0)]).toEqual([[], [], []]);
  });
});
