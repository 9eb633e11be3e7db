import { afterAll, beforeAll, expect, test } from 'vitest';
import { loadStreams } from '../../local/demo/payloads.ts';
import { skua, startedNode } from './spawn.ts';

let node: Awaited<ReturnType<typeof startedNode>>;
beforeAll(async () => { node = await startedNode(['--mem-db', '--chunk-size', '128KiB']); });
afterAll(async () => { await node.stop(); });

interface Report { isSame: boolean; streams: { stream: string; before: number; sent: number; written: number; after: number; deleted: string | null; wasDeleted: boolean }[] }

test('payloads become streams of repositories, with ids that stay', async () => {
  const streams = await loadStreams();
  const events = streams.flatMap((stream) => stream.events);
  expect(events).toHaveLength(329);
  expect(new Set(events.map((event) => event.eventId)).size).toBe(329);
  expect(await loadStreams()).toEqual(streams);
  expect(streams.map(({ stream }) => stream)).toEqual(expect.arrayContaining(['github-Codertocat-Hello-World', 'github-Octocoders', 'github-other']));
  expect(events.map(({ eventType }) => eventType)).toEqual(expect.arrayContaining(['push', 'issues.opened']));
});

test('all is written, read back, compared; a second run writes nothing', async () => {
  const first = await skua(['demo', '--node', node.url, '--json']).ended;
  expect(first).toMatchObject({ code: 0, err: '' });
  const { isSame, streams } = JSON.parse(first.out) as Report;
  expect(isSame).toBe(true);
  expect(streams.every(({ before, sent, written }) => before === 0 && sent > 0 && written === sent)).toBe(true);
  expect(streams.filter(({ deleted }) => deleted !== null).map(({ deleted, after }) => [deleted, after])).toEqual([['soft', 0], ['hard', 0]]);

  const second = await skua(['demo', '--json'], { SKUA_NODE: node.url }).ended;
  expect(second.code).toBe(0);
  const again = JSON.parse(second.out) as Report;
  expect(again.streams.map(({ stream, before, written }) => [stream, before, written])).toEqual(streams.map(({ stream, after }) => [stream, after, after]));
  expect(again.streams.filter(({ wasDeleted }) => wasDeleted)).toHaveLength(2);

  const shown = await skua(['demo', '--node', node.url]).ended;
  expect(shown.out).toContain('What came back is what was sent.');
  expect(shown.out).toMatch(/^all +310 +310 +310 +310$/m);
});

test('no node: 3, and how to start one', async () => {
  const { code, out, err } = await skua(['demo', '--node', 'http://127.0.0.1:1']).ended;
  expect({ code, out }).toEqual({ code: 3, out: '' });
  expect(err).toMatch(/^error node_unreachable: .*npm start.*--node URL/);
});

test('an address that is none: 2', async () => {
  expect(await skua(['demo'], { SKUA_NODE: 'localhost' }).ended).toMatchObject({ code: 2, err: expect.stringContaining('SKUA_NODE must be an address') });
});
