import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import type { LogView } from '../../../handlers/documents/node.ts';
import type { NodeLog } from '../../../local/log/logger.ts';
import { startNode } from '../../../local/node/node.ts';
import type { RunningNode } from '../../../local/node/node.ts';
import { LogLines } from '../../handlers/secured.ts';
import { load } from '../config/support.ts';

/** Nodes in this process over folders of their own, asked over HTTP. */

export class NodeLines extends LogLines implements NodeLog {
  readonly level = 'info';
  setLevel(): void {}
  recent(): LogView {
    return { level: this.level, first: 1, last: 0, missed: 0, lines: [] };
  }
  stats(): void {}
  async close(): Promise<void> {}
}

export interface Started {
  readonly node: RunningNode;
  readonly log: NodeLines;
  readonly folder: string;
  ask(
    method: string,
    path: string,
    more?: { readonly headers?: Record<string, string>; readonly body?: string },
  ): Promise<Response>;
  json<T = any>(method: string, path: string): Promise<T>;
  /** Appends this many events of 4 kB, in batches. */
  append(stream: string, count: number): Promise<void>;
}

const OPTIONS = [
  '--node-port',
  '0',
  '--insecure',
  '--chunk-size',
  '131072',
  '--max-mem-table-size',
  '50',
  '--stream-existence-filter-size',
  '10000',
];
let nextId = 0;

export async function temporaryFolder(): Promise<{ readonly folder: string; remove(): Promise<void> }> {
  const folder = await mkdtemp(path.join(tmpdir(), 'skua-backup-'));
  return { folder, remove: () => rm(folder, { recursive: true, force: true }) };
}

/** A node whose data lie in `db` below the folder. */
export async function startedIn(folder: string, words: readonly string[] = []): Promise<Started> {
  const log = new NodeLines();
  const node = await startNode({
    config: load([...OPTIONS, ...(words.includes('--mem-db') ? [] : ['--db', path.join(folder, 'db')]), ...words]),
    log,
    env: {},
  });
  const ask: Started['ask'] = (method, url, more = {}) => fetch(node.url + url, { method, ...more });
  const append = async (stream: string, count: number): Promise<void> => {
    for (let done = 0; done < count; done += 20) {
      const events = Array.from({ length: Math.min(20, count - done) }, () => ({
        eventId: `00000000-0000-4000-8000-${String(++nextId).padStart(12, '0')}`,
        eventType: 'made',
        data: { text: 'x'.repeat(4_000) },
      }));
      const reply = await ask('POST', `/streams/${stream}`, {
        headers: { 'content-type': 'application/vnd.eventstore.events+json' },
        body: JSON.stringify(events),
      });
      if (reply.status !== 201) throw new Error(`append: ${reply.status} ${await reply.text()}`);
    }
  };
  return { node, log, folder, ask, append, json: async (method, url) => (await ask(method, url)).json() as never };
}

/** Between two questions, in milliseconds: whoever asks without a pause takes the processor from who is asked. */
const PAUSE_MS = 10;

/** Asks until the answer is this; a test that waits in vain is ended by the runner. */
export async function until(what: () => Promise<boolean>): Promise<void> {
  while (!(await what()))
    await new Promise((resolve) => {
      setTimeout(resolve, PAUSE_MS);
    });
}
