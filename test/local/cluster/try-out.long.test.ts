import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo, Server } from 'node:net';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { placesOf } from '../../../local/cluster/try-out.ts';
import { freePorts } from '../../support/free-ports.ts';
import { skua } from '../spawn.ts';

let root: string;
beforeEach(() => {
  root = mkdtempSync(path.join(tmpdir(), 'skua-try-'));
});
afterEach(() => {
  rmSync(root, { recursive: true, force: true });
});

function held(): Promise<{ readonly server: Server; readonly port: number }> {
  const server = createServer();
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve({ server, port: (server.address() as AddressInfo).port }));
  });
}

test('members take every tenth port, and a free one where that is taken', async () => {
  const { server, port } = await held();
  const places = await placesOf('/x', 3, port - 10);
  server.close();
  expect(places[1]!.port).not.toBe(port);
  expect(new Set(places.map((place) => place.port)).size).toBe(3);
  expect(places.map(({ db }) => db)).toEqual(['/x/node1', '/x/node2', '/x/node3']);
});

test('three members start, one is killed and told of, and Ctrl+C stops the others', async () => {
  const [port] = await freePorts(1);
  const command = skua(['cluster', 'try', '--db', root, '--port', String(port)], {
    SERVER_STREAM_EXISTENCE_FILTER_SIZE: '10000',
  });
  await command.seen(/Ctrl\+C stops all\./);
  const members = [...command.out.matchAll(/^(http:\S+) {2}data \S+, log (\S+), process (\d+)$/gm)].map(
    ([, url, log, pid]) => ({ url: url!, log: log!, pid: Number(pid) }),
  );
  expect(members).toHaveLength(3);
  for (const { url } of members) expect((await fetch(`${url}/health/ready`)).status).toBe(200);
  process.kill(members[2]!.pid, 'SIGKILL');
  await command.seen(new RegExp(`Member 3 \\(${members[2]!.url}\\) has exited: SIGKILL\\. The others keep running`));
  expect((await fetch(`${members[0]!.url}/health/live`)).status).toBe(204);
  command.child.kill('SIGINT');
  expect(await command.ended).toMatchObject({ code: 0 });
  expect(command.out).toContain('All members have stopped.');
  for (const { pid } of members) expect(() => process.kill(pid, 0)).toThrow();
  expect(readdirSync(root)).toEqual(expect.arrayContaining(['log', 'node1.log', 'node2.log', 'node3.log']));
  expect(readFileSync(path.join(root, 'node1.log'), 'utf8')).toContain('"stopped"');
});

test('a member that can not start ends the others, and says why', async () => {
  const command = skua(['cluster', 'try', '--db', root, '--port', '1'], { SERVER_NODE_IP: '203.0.113.7' });
  const { code, err } = await command.ended;
  expect(code).toBe(1);
  expect(err).toContain('error member_failed: A member did not start');
  expect(err).toContain('Its log:');
});
