import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runProgram } from '../../local/cli/run-command.ts';
import { COMMANDS } from '../../local/commands/all-commands.ts';
import { loadStreams } from '../../local/demo/demo-payloads.ts';
import { ran, startedNode } from './spawn.ts';
import { FakeIo } from './support.ts';

let node: Awaited<ReturnType<typeof startedNode>>;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'skua-demo-'));
  writeFileSync(path.join(folder, 'token'), 'a token\n');
  node = await startedNode([
    '--disable-tls',
    '--db',
    path.join(folder, 'data'),
    '--chunk-size',
    '1MiB',
    '--connectors-data-protection-token-file',
    path.join(folder, 'token'),
  ]);
});
afterAll(async () => {
  await node.stop();
  rmSync(folder, { recursive: true, force: true });
});

const LOGIN = { SKUA_USER: 'admin', SKUA_PASSWORD: 'changeit' };

interface Report {
  isSame: boolean;
  isSigned: boolean;
  forgedStatus: number | null;
  streams: {
    stream: string;
    before: number;
    sent: number;
    refused: number;
    written: number;
    after: number;
    fate: string | null;
    wasBefore: boolean;
  }[];
  scavenge: {
    removable: number;
    result: string | null;
    bytesBefore: number;
    bytesAfter: number;
    erasure: { stream: string; before: string[]; after: string[] } | null;
  };
  left: { stream: string; events: number; wasBefore: boolean };
}

test('payloads become streams of repositories, with ids that stay', async () => {
  const streams = await loadStreams();
  const deliveries = streams.flatMap((stream) => stream.deliveries);
  expect(deliveries).toHaveLength(329);
  expect(new Set(deliveries.map(({ deliveryId }) => deliveryId)).size).toBe(329);
  expect(await loadStreams()).toEqual(streams);
  expect(streams.map(({ stream }) => stream)).toEqual(
    expect.arrayContaining(['github-Codertocat-Hello-World', 'github-Octocoders', 'github-other']),
  );
  expect(deliveries.map(({ eventType }) => eventType)).toEqual(expect.arrayContaining(['push', 'issues.opened']));
});

test('all is posted with signatures, read back, compared, scavenged and erased, and something is left to scavenge; a second run writes nothing and leaves that', async () => {
  const db = path.join(folder, 'data');
  const first = await ran(['demo', '--node', node.url, '--db', db, '--json']);
  expect(first).toMatchObject({ code: 0, err: '' });
  const { streams, scavenge, left, ...report } = JSON.parse(first.out) as Report;
  expect(report).toMatchObject({ isSame: true, isSigned: true, forgedStatus: 401 });
  expect(
    streams.every(
      ({ before, sent, refused, written }) => before === 0 && sent > 0 && refused === 0 && written === sent,
    ),
  ).toBe(true);
  expect(await statesOf(node.url)).toEqual(['CONNECTOR_STATE_STOPPED']);
  expect(streams.filter(({ fate }) => fate !== null).map(({ fate, after }) => [fate, after])).toEqual([
    ['limited', 50],
    ['soft', 0],
    ['hard', 0],
  ]);
  // 180 events of the limited stream, 16 of the soft-deleted one, whose last one stays, 2 of the hard-deleted one.
  expect(scavenge.removable).toBeGreaterThanOrEqual(198);
  expect(scavenge).toMatchObject({
    result: 'Success',
    erasure: { stream: 'github-lineville-elastic-machines-testing', after: [] },
  });
  expect(scavenge.erasure!.before.length).toBeGreaterThan(0);
  expect(scavenge.bytesAfter).toBeLessThan(scavenge.bytesBefore / 2);

  expect(left).toEqual({ stream: 'github-octo-org-octo-repo', events: 18, wasBefore: false });
  const explained = await ran(['explain', left.stream, '--node', node.url, '--json'], LOGIN);
  expect(JSON.parse(explained.out)).toMatchObject({ stream: left.stream, removed: [{ rule: '$tb' }] });
  const dryRun = async () => {
    const { out } = await ran(['scavenge', 'start', '--dry-run', '--json', '--node', node.url], LOGIN);
    return Number(/"totals": ?\{[^}]*"discardable": ?(\d+)/.exec(out)?.[1]);
  };
  expect(await dryRun()).toBeGreaterThanOrEqual(17);

  const second = await ran(['demo', '--db', db, '--json'], { SKUA_NODE: node.url });
  expect(second.code).toBe(0);
  const again = JSON.parse(second.out) as Report;
  expect(again).toMatchObject({ isSame: true, isSigned: true, forgedStatus: 401 });
  expect(again.streams.map(({ stream, before, written }) => [stream, before, written])).toEqual(
    streams.map(({ stream, after }) => (stream === left.stream ? [stream, 0, 0] : [stream, after, 0])),
  );
  expect(again.streams.filter(({ wasBefore }) => wasBefore)).toHaveLength(4);
  expect(again.scavenge).toMatchObject({ result: null, erasure: null });
  expect(again.scavenge.removable).toBeGreaterThanOrEqual(17);
  expect(again.left).toEqual({ ...left, events: 0, wasBefore: true });

  const shown = await ran(['demo', '--node', node.url]);
  expect(shown.out).toContain('The events read match what was sent.');
  expect(shown.out).toMatch(/^all +112 +62 +0 +112$/m);
  expect(shown.out).toContain('Posted 62 webhooks to /webhook/demo-github in ');
  expect(shown.out).toContain(' s: 62 accepted, 0 refused.');
  expect(shown.out).toContain('This run deleted nothing, so it does not scavenge.');
  expect(shown.out).toContain(
    `An earlier run has deleted ${left.stream}. Its data is still on disk, for the next scavenge.`,
  );
  expect(shown.out).toContain(`\nnpx skua scavenge start --dry-run --node ${node.url} `);

  // Without --db it is ./data that is looked at.
  expect(shown.out).toContain(
    'The files of that node are not in ./data, so they were not searched; --db DIR names its data directory.',
  );
  expect(again.scavenge).toMatchObject({ isElsewhere: false });

  // What it says to do is done: then nothing is left.
  await ran(['scavenge', 'start', '--wait', '--node', node.url], LOGIN);
  expect(await dryRun()).toBe(0);
  const last = await ran(['demo', '--node', node.url]);
  expect(last.out).toContain('nothing to remove: no scavenge is needed.');
  expect(last.out).not.toContain('npx skua');

  // Of what other streams leave nothing is told as if it were the demo's.
  const login = { authorization: `Basic ${btoa('admin:changeit')}` };
  const other = `${node.url}/streams/other`;
  await fetch(other, {
    method: 'POST',
    headers: {
      ...login,
      'content-type': 'application/json',
      'es-eventtype': 'made',
      'es-eventid': '9c2f4a1b-7e3d-4b5a-a6c8-d9e0f1a2b3c4',
    },
    body: '{}',
  });
  expect((await fetch(other, { method: 'DELETE', headers: { ...login, 'es-harddelete': 'true' } })).status).toBe(204);
  expect(await dryRun()).toBeGreaterThan(0);
  expect((await ran(['demo', '--node', node.url])).out).not.toContain('An earlier run has deleted');
});

test('on a terminal a bar shows how much was posted, and goes', async () => {
  let nowMs = 0;
  const io = new FakeIo({ isTTY: true, env: { NO_COLOR: '1' }, monotonicMs: () => (nowMs += 100) });
  expect(await runProgram({ commands: COMMANDS, version: '1' }, ['demo', '--node', node.url], io)).toBe(0);
  const { out, err } = io;
  expect(out).toContain('The events read match what was sent.');
  expect(err).toMatch(/\[[#-]+\] posting webhooks: \d+ %/);
  expect(err.endsWith('\r\u001B[2K')).toBe(true);
});

async function statesOf(url: string): Promise<string[]> {
  const reply = await fetch(`${url}/connectors`, { headers: { authorization: `Basic ${btoa('ops:changeit')}` } });
  return ((await reply.json()) as { items: { state: string }[] }).items.map(({ state }) => state);
}

test('without a data-protection token nothing is signed, and the demo says so', async () => {
  const bare = await startedNode(['--insecure', '--mem-db']);
  const { code, out } = await ran(['demo', '--node', bare.url]);
  await bare.stop();
  expect(code).toBe(0);
  expect(out).toContain(' s: 329 accepted, 0 refused.');
  expect(out).toContain('None was signed: ');
});

test('a node without connectors: 4', async () => {
  const bare = await startedNode(['--insecure', '--mem-db', '--connectors-enabled', 'false']);
  const { code, err } = await ran(['demo', '--node', bare.url]);
  await bare.stop();
  expect({ code, err }).toEqual({ code: 4, err: expect.stringMatching(/^error connectors_off: /) });
});

test('no node: 3, and how to start one', async () => {
  const { code, out, err } = await ran(['demo', '--node', 'http://127.0.0.1:1']);
  expect({ code, out }).toEqual({ code: 3, out: '' });
  expect(err).toMatch(/^error node_unreachable: .*npm start.*--node URL/);
});

test('an address that is none: 2', async () => {
  expect(await ran(['demo'], { SKUA_NODE: 'localhost' })).toMatchObject({
    code: 2,
    err: expect.stringContaining('SKUA_NODE must be an address'),
  });
});
