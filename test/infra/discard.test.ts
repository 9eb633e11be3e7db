import { chmodSync, linkSync, mkdtempSync, readdirSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { DISCARD_STEP_BYTES, freeBitByBit, GONE } from '../../infra/fs/discard.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';

let folder: string;
beforeEach(() => { folder = mkdtempSync(path.join(tmpdir(), 'skua-discard-')); });
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

  test('that is not there is no error', async () => {
    await new FilesystemStorage({ root: folder }).discard('chunk-000000.000000');
    await freeBitByBit(path.join(folder, 'absent'));
  });
});
