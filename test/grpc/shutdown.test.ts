import { mkdtempSync, rmSync } from 'node:fs';
import * as http2 from 'node:http2';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { startNode } from '../../local/node/node.ts';
import { NodeLines } from '../local/backup/node-kit.ts';
import { load } from '../local/config/support.ts';
import { installFolder, unpackSet } from '../support/fixtures.ts';
import { isOfWholeNode, listedDeviations, tellUnlisted } from './deviations.ts';
import { loadGrpcExchanges } from './recorded/exchange.ts';
import { Replay } from './recorded/replay.ts';
import { SocketCall } from './recorded/socket-call.ts';

const ADMIN = { authorization: `Basic ${Buffer.from('admin:changeit').toString('base64')}` };
/** Events of `g-b1`, and the group of `ps-1`, of which the recorded calls before have left as much. */
const EVENTS_BEFORE = 9;
/** A test that waits in vain is ended by the runner. */
async function until(holds: () => boolean): Promise<boolean> {
  while (!holds()) await turn();
  return true;
}

test('a node that is told to stop ends what is open as recorded, but for what is listed with its reason', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'skua-shutdown-'));
  installFolder(folder, unpackSet('orders-1-before'));
  const node = await startNode({
    config: load(['--node-port', '0', '--disable-tls', '--db', folder, '--stream-existence-filter-size', '10000']),
    log: new NodeLines(),
    env: {},
  });
  const ask = async (method: string, path: string, type: string, body: object): Promise<number> =>
    (await fetch(node.url + path, { method, headers: { ...ADMIN, 'content-type': type }, body: JSON.stringify(body) }))
      .status;
  const events = Array.from({ length: EVENTS_BEFORE }, (_, i) => ({
    eventId: `00000000-0000-4000-9000-${String(i).padStart(12, '0')}`,
    eventType: 't',
    data: {},
  }));
  expect([
    await ask('POST', '/streams/g-b1', 'application/vnd.eventstore.events+json', events),
    await ask('PUT', '/subscriptions/ps-1/g', 'application/json', {}),
  ]).toEqual([201, 201]);
  const session = http2.connect(node.url);
  session.on('error', () => {});
  const all = loadGrpcExchanges().filter(({ name }) => isOfWholeNode(name));
  const calls: SocketCall[] = [];
  const nothing = () => Promise.reject(new Error('nothing is written beside these calls'));
  // Whoever runs a node stops it when that was asked for; here only once the last call has been answered, which is made
  // in between.
  let isStopped = false;
  const stopped = node.shutdownAsked.then(async () => {
    await until(() => calls[all.length - 1]?.ending != null);
    isStopped = true;
    await node.stop();
  });
  try {
    const { differences, compared } = await new Replay({
      store: { append: nothing, deleteStream: nothing },
      open(path, metadata, deadlineMs) {
        const call = new SocketCall(session, path, metadata, deadlineMs);
        calls.push(call);
        return call;
      },
      until,
      // Before the end is asked for, what is open is answered: statistics come at once here.
      quiet: async () => {
        await until(() => calls.at(-1)!.received.length > 0);
      },
      at: () => {},
      plays: ({ name }) => isOfWholeNode(name),
    }).run();
    await stopped;
    const listed = listedDeviations(isOfWholeNode);
    tellUnlisted(differences, listed);
    expect(compared).toBe(all.length);
    expect(Object.fromEntries(differences)).toEqual(Object.fromEntries(listed));
  } finally {
    session.destroy();
    await (isStopped ? stopped : node.stop());
    rmSync(folder, { recursive: true, force: true });
  }
});
