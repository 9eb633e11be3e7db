import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ChunkMapView } from '../../../core/log/chunk-table/chunk-table.ts';
import type { OverviewView } from '../../../handlers/documents/node.ts';
import { startedIn, temporaryFolder, type Started } from '../backup/node-kit.ts';

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let started: Started | null = null;

beforeEach(async () => {
  folder = await temporaryFolder();
});
afterEach(async () => {
  await started?.node.stop();
  started = null;
  await folder.remove();
});

describe('a node', () => {
  test('tells how it is, with what its files take, and what to do', async () => {
    started = await startedIn(folder.folder);
    await started.append('orders', 60);
    // A stop writes the index.
    await started.node.stop();
    started = await startedIn(folder.folder);
    await started.append('orders', 20);
    const { chunks } = await started.json<ChunkMapView>('GET', '/admin/chunks');
    const { node, log, disk, activity, licence, warnings, certificates } = await started.json<OverviewView>(
      'GET',
      '/admin/overview',
    );
    expect(node).toMatchObject({
      state: 'Leader',
      isSecure: false,
      authentication: 'insecure',
      isMember: false,
      address: new URL(started.node.url).host,
    });
    expect([log.chunks, log.chunks > 1]).toEqual([chunks!.length, true]);
    expect([disk!.chunkBytes, log.bytes]).toEqual(
      Array.from({ length: 2 }, () => chunks!.reduce((sum, { bytes }) => sum + bytes, 0)),
    );
    expect(disk!.indexBytes).toBeGreaterThan(10_000);
    expect(disk!.totalBytes).toBeGreaterThan(disk!.usedBytes);
    expect(activity.totals.eventsWritten).toBeGreaterThanOrEqual(20);
    expect(activity.totals.appends).toBeGreaterThan(0);
    expect([licence, certificates]).toEqual([{ source: 'built-in', expiresAt: null, refusal: null }, []]);
    expect(warnings.map(({ code }) => code)).toEqual(expect.arrayContaining(['insecure', 'no-backup']));
  });

  test('in memory has no disk, and backups are no matter of it', async () => {
    started = await startedIn(folder.folder, ['--mem-db']);
    const { disk, warnings } = await started.json<OverviewView>('GET', '/admin/overview');
    expect(disk).toBeNull();
    const codes = warnings.map(({ code }) => code);
    expect([codes.includes('in-memory'), codes.includes('no-backup')]).toEqual([true, false]);
  });
});
