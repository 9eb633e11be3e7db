import { spawn } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { guidFromUuidBytes, guidToText } from '../../core/base/guid.ts';
import { verifyDirectory } from '../../core/integrity/integrity.ts';
import { ANY } from '../../core/streams/api.ts';
import type { AllPosition, NewEvent } from '../../core/streams/api.ts';
import { systemClock } from '../../infra/system-clock.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';
import { bySize } from '../support/run-size.ts';
import { Random } from '../support/random.ts';
import { openTestStore } from '../support/test-store.ts';
import { randomUuid } from '../support/workload.ts';

/**
 * A process that scavenges is killed again and again, until a run ends; what is left is what an undisturbed run leaves.
 */

const SCAVENGER = fileURLToPath(new URL('../support/kill-scavenger.ts', import.meta.url));
const FOLDERS = bySize(2, 2, 3);
const KILLS = 3;

let base = '';
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'skua-scavenge-kill-'));
});
afterEach(() => {
  rmSync(base, { recursive: true, force: true });
});

/** Some thirty chunks of streams that keep few events, were deleted, or stay. Gives the log's end. */
async function fill(folder: string, random: Random): Promise<number> {
  const open = await openTestStore({
    storage: new FilesystemStorage({ root: folder }),
    chunkSizeBytes: 65_536,
    memTableEntriesMax: 400,
  });
  const event = (type: string, data: Uint8Array, isJson: boolean): NewEvent => ({
    id: guidToText(guidFromUuidBytes(randomUuid(random)), 0),
    type,
    isJson,
    data,
    metadata: new Uint8Array(0),
  });
  for (let i = 0; i < 30; i++) {
    if (i % 3 === 0)
      await open.store.append(`$$stream-${i}`, ANY, [
        event('$metadata', new TextEncoder().encode(`{"$maxCount":${i + 1}}`), true),
      ]);
  }
  for (let i = 0; i < 2_500; i++)
    await open.store.append(`stream-${random.int(0, 29)}`, ANY, [
      event('noted', new Uint8Array(random.int(300, 1_000)), false),
    ]);
  for (let i = 1; i < 30; i += 3) await open.store.deleteStream(`stream-${i}`, ANY, i % 2 === 0 ? 'hard' : 'soft');
  const { end } = open.store;
  await open.close();
  return end;
}

/** Scavenges in a process of its own, which is killed at its `killAt`-th line. True when the run came to its end. */
async function scavenge(folder: string, killAt: number): Promise<{ readonly isDone: boolean; readonly lines: number }> {
  const child = spawn(process.execPath, [SCAVENGER, folder], { stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  let complaints = '';
  let lines = 0;
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    said += chunk;
    lines += chunk.split('\n').length - 1;
    if (lines >= killAt) child.kill('SIGKILL');
  });
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    complaints += chunk;
  });
  const signal = await new Promise((resolve) => {
    child.on('close', (_, by) => resolve(by));
  });
  if (signal === 'SIGKILL') return { isDone: false, lines };
  expect(said, complaints).toContain('done Success');
  return { isDone: true, lines };
}

/** Everything of the log below `end`: position, stream, number and data. */
async function contentOf(folder: string, end: number): Promise<string[]> {
  const open = await openTestStore({ storage: new FilesystemStorage({ root: folder }), clock: systemClock });
  const rows: string[] = [];
  for (let from: AllPosition | 'start' = 'start'; ;) {
    const page = await open.store.readAll({ direction: 'forward', from, count: 1_000 });
    for (const event of page.events)
      if (event.position < end)
        rows.push(`${event.position} ${event.number}@${event.stream} ${event.type} ${event.data.length}`);
    if (page.isEnd) break;
    from = page.next;
  }
  await open.close();
  return rows;
}

describe('kill -9 of a scavenge', () => {
  it('changes nothing about what is left at last', async () => {
    const random = new Random(77);
    const template = join(base, 'template');
    const end = await fill(template, random);
    const undisturbed = join(base, 'undisturbed');
    cpSync(template, undisturbed, { recursive: true });
    const { lines } = await scavenge(undisturbed, Infinity);
    const expected = await contentOf(undisturbed, end);
    expect(expected.length).toBeLessThan((await contentOf(template, end)).length);
    let killed = 0;
    for (let i = 0; i < FOLDERS; i++) {
      const folder = join(base, `killed-${i}`);
      cpSync(template, folder, { recursive: true });
      for (let kill = 0, isDone = false; !isDone; kill++) {
        ({ isDone } = await scavenge(folder, kill < KILLS ? random.int(1, lines - 1) : Infinity));
        if (!isDone) killed++;
      }
      expect(await contentOf(folder, end), `folder ${i}`).toEqual(expected);
      const storage = new FilesystemStorage({ root: folder });
      const run = verifyDirectory({ storage, digests: nodeDigests, clock: systemClock });
      for (let next = await run.next(); ; next = await run.next()) {
        if (next.done === true) break;
        if (next.value.kind === 'finding') expect.fail(JSON.stringify(next.value));
      }
      expect(readdirSync(folder).filter((name) => name.endsWith('.tmp'))).toEqual([]);
      expect(readdirSync(join(folder, 'index', 'scavenging'))).toEqual(['scavenging.db']);
    }
    // A run may end before the signal has come to it.
    expect(killed).toBeGreaterThan(0);
  });
});
