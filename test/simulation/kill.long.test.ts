import { spawn } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ANY } from '../../core/streams/api.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';
import { findFormatErrors } from '../support/check-directory.ts';
import { findLosses } from '../support/check-store.ts';
import { killEvent } from '../support/kill-writer.ts';
import { Random } from '../support/random.ts';
import { openTestStore } from '../support/test-store.ts';
import type { Request } from '../support/workload.ts';
import { bySize } from '../support/run-size.ts';

/**
 * A real process is killed under load, several times on the same folder, and each time everything acknowledged is
 * there.
 */

const WRITER = fileURLToPath(new URL('../support/kill-writer.ts', import.meta.url));
const ROUNDS = bySize(4, 4, 20);
const CLIENTS = 8;

let base = '';
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'skua-kill-'));
});
afterEach(() => {
  rmSync(base, { recursive: true, force: true });
});

/** Runs the writer until it has said `acknowledgements`, kills it, and returns all it said. */
async function writeUntilKilled(folder: string, seed: number, acknowledgements: number): Promise<string[]> {
  const child = spawn(process.execPath, [WRITER, folder, String(seed), String(CLIENTS)], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  let complaints = '';
  let seen = 0;
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    said += chunk;
    seen += chunk.split('\na ').length - 1;
    if (seen >= acknowledgements) child.kill('SIGKILL');
  });
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    complaints += chunk;
  });
  const signal = await new Promise((resolve) => {
    child.on('close', (_, by) => resolve(by));
  });
  if (signal !== 'SIGKILL') throw new Error(`The writer ended by itself: ${complaints}`);
  // What follows the last line end is a line cut off by the kill.
  return said.split('\n').slice(0, -1);
}

function requestsOf(lines: readonly string[], round: number): Request[] {
  const requests = new Map<string, Request>();
  for (const line of lines) {
    const words = line.split(' ');
    if (words[0] === 'b') {
      const events = words[2]!.split(',').map(killEvent);
      requests.set(events[0]!.id, {
        kind: 'append',
        stream: words[1]!,
        target: words[1]!,
        expectedVersion: ANY,
        events,
        round,
        acknowledged: null,
        refusedWith: null,
      });
    } else if (words[0] === 'a') {
      requests.get(words[4]!)!.acknowledged = {
        firstEventNumber: Number(words[1]),
        lastEventNumber: Number(words[2]),
        position: Number(words[3]),
        operations: 0,
      };
    }
  }
  return [...requests.values()];
}

describe('kill -9 under load', () => {
  it('loses nothing that was acknowledged', async () => {
    const random = new Random(41);
    const folder = join(base, 'data');
    const requests: Request[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      requests.push(...requestsOf(await writeUntilKilled(folder, round + 1, random.int(20, 400)), round));
      // A copy is judged, so that the next writer finds what the kill left and not what a clean stop made of it.
      const copy = join(base, `copy-${round}`);
      cpSync(folder, copy, { recursive: true });
      const storage = new FilesystemStorage({ root: copy });
      const opened = await openTestStore({ storage, memTableEntriesMax: 500 });
      expect(await findLosses(opened.store, requests, 0), `round ${round}`).toEqual([]);
      await opened.close();
      expect(await findFormatErrors(storage), `round ${round}`).toEqual([]);
      rmSync(copy, { recursive: true });
    }
    expect(requests.filter((request) => request.acknowledged !== null).length).toBeGreaterThan(500);
  });
});
