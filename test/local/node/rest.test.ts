import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { IdleCollector } from '../../../infra/garbage.ts';
import { systemClock } from '../../../infra/system-clock.ts';
import { startNode } from '../../../local/node/node.ts';
import { OWN_PROCESS } from '../../../local/node/node-world.ts';
import { testLog } from '../../../local/testing/test-log.ts';
import { load } from '../config/support.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'skua-rest-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('a node to which nothing comes any more has the garbage of its process collected', async () => {
  const begun = Promise.withResolvers<void>();
  const made: IdleCollector[] = [];
  class Seen extends IdleCollector {
    override begin(): void {
      begun.resolve();
    }
  }
  const node = await startNode({
    config: load([`--db=${folder}`, '--insecure', '--node-port=0', '--max-mem-table-size=1']),
    env: {},
    log: testLog('error', undefined),
    world: {
      ...OWN_PROCESS,
      keepsProcess: false,
      // Hardly any entries have come for as long as memory of a memtable is kept.
      dataClock: { ...systemClock, sleep: (ms, signal) => systemClock.sleep(ms === 5_000 ? 0 : ms, signal) },
      collector: () => {
        made.push(new Seen());
        return made.at(-1)!;
      },
    },
  });
  try {
    const reply = await fetch(`${node.url}/streams/s`, {
      method: 'POST',
      headers: { 'content-type': 'application/vnd.eventstore.events+json' },
      body: JSON.stringify([{ eventId: '5c11ab1e-0000-4000-8000-000000000001', eventType: 'made', data: {} }]),
    });
    expect(reply.status).toBe(201);
    await begun.promise;
    expect(made).toHaveLength(1);
  } finally {
    await node.stop();
  }
});

test('whose process is its own has one that does so', () => {
  expect(OWN_PROCESS.collector?.()).toBeInstanceOf(IdleCollector);
});
