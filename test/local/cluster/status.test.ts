import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { runProgram } from '../../../local/cli/run-command.ts';
import { isWhole, statusOf } from '../../../local/cluster/gossip-client.ts';
import type { GossipDocument, MemberDocument } from '../../../local/cluster/gossip-client.ts';
import { clusterStatusCommand } from '../../../local/commands/cluster-command.ts';
import { clusterStatusOptions } from '../../../local/commands/options-command.ts';
import { runClusterStatus } from '../../../local/commands/run-cluster-status.ts';
import { FakeIo } from '../support.ts';

/** `skua cluster status`, against members that say what the test wants. */

const servers: Server[] = [];
afterEach(async () => {
  await Promise.all(servers.splice(0).map(closed));
});

function closed(server: Server): Promise<void> {
  server.closeAllConnections();
  return new Promise((resolve) => {
    server.close(() => resolve());
  });
}

/** A node that answers `/gossip` with what `say` gives, and everything else with 404. */
async function node(
  say: () => GossipDocument | number,
): Promise<{ readonly url: string; readonly port: number; readonly server: Server }> {
  const server = createServer((request, reply) => {
    const said = request.url === '/gossip' ? say() : 404;
    if (typeof said === 'number') reply.writeHead(said).end();
    else reply.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(said));
  });
  servers.push(server);
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve());
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, port, server };
}

function member(port: number, more: Partial<MemberDocument> = {}): MemberDocument {
  return {
    instanceId: `0000-${port}`,
    state: 'Follower',
    isAlive: true,
    httpEndPointIp: '127.0.0.1',
    httpEndPointPort: port,
    lastCommitPosition: 900,
    writerCheckpoint: 1_000,
    epochNumber: 4,
    nodePriority: 0,
    isReadOnlyReplica: false,
    esVersion: '0.1.0',
    appliedCommit: 20,
    scavengeId: null,
    bucketSilentMs: 0,
    ...more,
  };
}

const gossip = (...members: MemberDocument[]): GossipDocument => ({
  members,
  serverIp: '127.0.0.1',
  serverPort: members[0]!.httpEndPointPort,
});

async function run(words: readonly string[], io = new FakeIo()) {
  const code = await runProgram(
    { commands: [clusterStatusCommand], version: '1' },
    ['cluster', 'status', ...words],
    io,
  );
  return { code, out: io.out, err: io.err };
}

describe('what a member tells', () => {
  test('becomes who leads, and how far each is behind the furthest', () => {
    const status = statusOf(
      gossip(
        member(3, { writerCheckpoint: 400, appliedCommit: 17 }),
        member(1, { state: 'Leader', nodePriority: 7 }),
        member(2, { state: 'ReadOnlyReplica', appliedCommit: 20, scavengeId: 'abc' }),
      ),
    );
    expect(status).toMatchObject({ askedNode: '127.0.0.1:3', leader: '127.0.0.1:1', epoch: 4 });
    expect(
      status.members.map(({ address, lagBytes, lagCommits, scavengeId }) => [
        address,
        lagBytes,
        lagCommits,
        scavengeId,
      ]),
    ).toEqual([
      ['127.0.0.1:1', 0, 0, null],
      ['127.0.0.1:2', 0, 0, 'abc'],
      ['127.0.0.1:3', 600, 3, null],
    ]);
    expect(isWhole(status)).toBe(true);
  });
  test('of two that say that they lead, the one of the later epoch does', () => {
    expect(
      statusOf(gossip(member(1, { state: 'Leader', epochNumber: 3 }), member(2, { state: 'Leader', epochNumber: 4 })))
        .leader,
    ).toBe('127.0.0.1:2');
  });
  test('a server of the reference counts no commits', () => {
    const { appliedCommit: _, ...other } = member(1, { state: 'Leader' });
    expect(statusOf(gossip(other)).members[0]).toMatchObject({ lagCommits: null, lagBytes: 0 });
  });
  test('an IPv6 address stands in brackets', () => {
    expect(statusOf(gossip(member(5, { httpEndPointIp: '::1' }))).members[0]!.address).toBe('[::1]:5');
  });
  test.each<[string, Partial<MemberDocument>, boolean]>([
    ['a member that is dead', { isAlive: false }, false],
    ['one that catches up', { state: 'CatchingUp' }, false],
    ['a follower', {}, true],
    ['a replica without a leader', { state: 'ReadOnlyLeaderless' }, false],
  ])('with %s', (_, more, expected) => {
    expect(isWhole(statusOf(gossip(member(1, { state: 'Leader' }), member(2, more))))).toBe(expected);
  });
});

describe('the command', () => {
  test('shows a line for each member, and ends with 0 where all is well', async () => {
    const { url, port } = await node(() =>
      gossip(
        member(port, { state: 'Leader' }),
        member(port + 1, { writerCheckpoint: 488, appliedCommit: 18, scavengeId: 'abc' }),
      ),
    );
    const { code, out, err } = await run(['--node', url]);
    expect([code, err]).toEqual([0, '']);
    expect(out.split('\n')[0]).toBe(
      `127.0.0.1:${port} leads, epoch 4; 2 of 2 members alive, as seen by 127.0.0.1:${port}`,
    );
    expect(out).toMatch(new RegExp(`127\\.0\\.0\\.1:${port} +Leader +0 +4 +1,000 +none +0\\.1\\.0\\n`));
    expect(out).toMatch(
      new RegExp(
        `127\\.0\\.0\\.1:${port + 1} +Follower +0 +4 +488 +2 commits, 512 B +0\\.1\\.0 +scavenges \\(abc\\)\\n`,
      ),
    );
  });
  test('ends with 1 where nobody leads, and says it of a dead one and of a silent bucket', async () => {
    const { url, port } = await node(() =>
      gossip(member(port, { bucketSilentMs: 7_000 }), member(port + 1, { isAlive: false })),
    );
    const { code, out } = await run(['--node', url]);
    expect(code).toBe(1);
    expect(out).toContain('No leader; 1 of 2 members alive');
    expect(out).toContain('dead (Follower)');
    expect(out).toContain('the bucket has not answered for 7 s');
  });
  test('a bucket whose answer is on its way is not called silent', async () => {
    const { url, port } = await node(() =>
      gossip(member(port, { state: 'Leader', bucketSilentMs: 999 }), member(port + 1, { bucketSilentMs: 1_600 })),
    );
    const { out } = await run(['--node', url]);
    expect(out.match(/the bucket has not answered for \d+ s/g)).toEqual(['the bucket has not answered for 1 s']);
  });
  test('as JSON', async () => {
    const { url, port } = await node(() => gossip(member(port, { state: 'Leader' })));
    expect(JSON.parse((await run(['--node', url, '--json'])).out)).toMatchObject({
      leader: `127.0.0.1:${port}`,
      members: [{ state: 'Leader', isAlive: true }],
    });
  });
  test('what a member says can not draw on the terminal', async () => {
    const { url, port } = await node(() => gossip(member(port, { state: 'Leader', esVersion: '\u001B[2J' })));
    expect((await run(['--node', url])).out).toContain('\\u001b[2J');
  });
  test('ends with 3 where nobody answers, or the node starts, and with 1 where it is none', async () => {
    const { url, server } = await node(() => 503);
    expect((await run(['--node', url])).code).toBe(3);
    await closed(server);
    expect((await run(['--node', url])).code).toBe(3);
    const other = await node(() => ({}) as GossipDocument);
    expect((await run(['--node', other.url])).err).toContain('check that it is a Skua node.');
  });
});

describe('--watch', () => {
  function watching(url: string, options: { json?: boolean; isTTY?: boolean } = {}) {
    const io = new FakeIo({ isTTY: options.isTTY ?? false, env: { TERM: 'dumb' } });
    const values = Object.fromEntries(
      Object.entries(clusterStatusOptions).map(([name, { fallback }]) => [name, fallback]),
    ) as { node: string | null; ca: string | null; watch: boolean; json: boolean };
    const ended = runClusterStatus(
      {
        options: { ...values, node: url, watch: true, json: options.json ?? false },
        given: new Set(),
        positionals: [],
      },
      io,
      1,
    );
    return {
      io,
      end: () => {
        io.process.emit('SIGINT', 'SIGINT');
        return ended;
      },
    };
  }

  test('tells what has changed, asks another member where the first is gone, and ends with Ctrl+C', async () => {
    const second = await node(() =>
      gossip(member(second.port, { state: 'Leader', epochNumber: 5 }), member(first.port, { isAlive: false })),
    );
    const first: Awaited<ReturnType<typeof node>> = await node(() =>
      gossip(member(first.port, { state: 'Leader' }), member(second.port)),
    );
    const { io, end } = watching(first.url);
    await io.written(new RegExp(`127.0.0.1:${first.port} leads, epoch 4`));
    await closed(first.server);
    await io.written(new RegExp(`127.0.0.1:${second.port} leads, epoch 5; 1 of 2`));
    await closed(second.server);
    await io.written(/No member answers: /);
    expect(await end()).toBe(0);
    // Told once each, however often it was asked.
    expect(io.out.match(/leads, epoch/g)).toHaveLength(2);
  });
  test('redraws in place on a terminal, no line longer than that', async () => {
    let epochNumber = 4;
    const { url, port } = await node(() =>
      gossip(member(port, { state: 'Leader', epochNumber: epochNumber++, scavengeId: 'x'.repeat(200) })),
    );
    const { io, end } = watching(url, { isTTY: true });
    await io.written(/epoch 6/);
    await end();
    expect(io.out).toContain('\u001B[3A');
    for (const text of io.out.split('\n'))
      expect(
        text.replaceAll('\u001B[3A', '').replaceAll('\u001B[K', '').replaceAll('\u001B[J', '').length,
      ).toBeLessThanOrEqual(100);
  });
  test('as a line of JSON each time', async () => {
    let epochNumber = 4;
    const { url, port } = await node(() => gossip(member(port, { state: 'Leader', epochNumber: epochNumber++ })));
    const { io, end } = watching(url, { json: true });
    await io.written(/"epoch":6/);
    await end();
    for (const text of io.out.trimEnd().split('\n'))
      expect(JSON.parse(text)).toMatchObject({ leader: `127.0.0.1:${port}` });
  });
});
