import { PassThrough } from 'node:stream';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startedNode } from './spawn.ts';
import type { Started } from './spawn.ts';
import { runBy } from './run.ts';
import { FakeIo } from './support.ts';

/** `skua subscriptions ...` at a real node. */

let node: Started;
beforeAll(async () => {
  node = await startedNode(['--insecure', '--mem-db']);
  const events = Array.from({ length: 3 }, (_, i) => ({
    eventId: `00000000-0000-4000-8000-00000000000${i + 1}`,
    eventType: 'made',
    data: { i },
  }));
  await ask('POST', '/streams/jobs', events, 'application/vnd.eventstore.events+json');
  await ask('PUT', '/subscriptions/jobs/workers', { minCheckPointCount: 1, maxCheckPointCount: 1 });
  await ask('PUT', '/subscriptions/mails/senders', { startPosition: '-1' });
});
afterAll(() => node.stop());

const ask = (method: string, path: string, body?: unknown, type = 'application/json') =>
  fetch(node.url + path, {
    method,
    headers: { 'content-type': type },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });

function run(line: string) {
  const io = Object.assign(new FakeIo({ env: { SKUA_NODE: node.url } }), {
    stdin: Object.assign(new PassThrough(), { isTTY: false }),
  });
  return runBy(io, ['subscriptions', ...line.split(' ')]);
}

async function json(line: string): Promise<any> {
  const { code, out } = await run(`${line} --json`);
  expect(code, out).toBe(0);
  return JSON.parse(out);
}

/** Takes what there is, which is three messages at the start. */
const take = async () =>
  ((await (await ask('GET', '/subscriptions/jobs/workers/10')).json()) as { entries: { title: string }[] }).entries
    .map(({ title }) => title)
    .toReversed();

describe('skua subscriptions', () => {
  test('lists groups, and those of a stream', async () => {
    const { code, out } = await run('list');
    expect(code).toBe(0);
    expect(out).toMatch(
      /^stream +group +status +consumers +in flight +parked +checkpoint +last event\njobs +workers +Live +0 +0 +0 +2\nmails +senders +Live +0 +0 +0\n$/,
    );
    expect((await json('list --stream jobs')).subscriptions).toMatchObject([
      { eventStreamId: 'jobs', groupName: 'workers' },
    ]);
    expect(await run('list --stream nothing')).toMatchObject({
      code: 1,
      err: expect.stringContaining(
        'error persistent_subscription_not_found: Stream nothing has no persistent subscription.',
      ),
    });
  });

  test('shows one with its settings', async () => {
    const { out } = await run('info jobs workers');
    expect(out).toMatch(
      /^jobs::workers {2}Live\nCheckpoint none yet, last known event 2, sent 0, parked 0\n[^]*namedConsumerStrategy RoundRobin\nNo consumers connected\.\n$/,
    );
    expect(await json('info jobs workers')).toMatchObject({ groupName: 'workers', connections: [] });
    expect((await run('info jobs nobody')).code).toBe(1);
    expect((await run('info jobs')).code).toBe(2);
  });

  test('sends parked messages again', async () => {
    expect(await take()).toEqual(['0@jobs', '1@jobs', '2@jobs']);
    await ask('POST', '/subscriptions/jobs/workers/nack/00000000-0000-4000-8000-000000000002?action=park');
    await ask(
      'POST',
      '/subscriptions/jobs/workers/ack?ids=00000000-0000-4000-8000-000000000001,00000000-0000-4000-8000-000000000003',
    );
    await expect.poll(async () => (await json('info jobs workers')).parkedMessageCount).toBe(1);
    expect((await run('list')).out).toContain(
      '1 group with parked messages: `skua subscriptions replay-parked STREAM GROUP` replays them.',
    );
    expect((await run('replay-parked jobs workers')).out).toBe('jobs::workers replays 1 parked message.\n');
    await expect.poll(take).toEqual(['1@jobs']);
    expect((await run('replay-parked mails senders')).out).toBe('mails::senders has no parked messages.\n');
    expect((await run('replay-parked jobs workers --stop-at x')).code).toBe(2);
  });

  test('lets one begin anew, and all', async () => {
    expect((await run('reset jobs workers')).code).toBe(2);
    expect((await run('reset jobs workers --from 1')).out).toBe('jobs::workers starts over from 1.\n');
    const taken: string[] = [];
    await expect.poll(async () => (taken.push(...(await take())), taken)).toEqual(['1@jobs', '2@jobs']);
    expect(await json('restart')).toEqual({ result: 'Success' });
    expect(await run('reset jobs workers --from x')).toMatchObject({
      code: 1,
      err: expect.stringContaining('bad_request'),
    });
  });

  test('is seen in the metrics', async () => {
    const text = await (await ask('GET', '/metrics')).text();
    expect(text).toContain(
      'eventstore_persistent_sub_last_known_event_number{event_stream_id="jobs",group_name="workers"} 2',
    );
    expect(text).toContain('eventstore_persistent_sub_connections{event_stream_id="mails",group_name="senders"} 0');
  });

  test('deletes one', async () => {
    expect((await run('delete mails senders')).out).toBe('mails::senders is deleted.\n');
    expect((await run('delete mails senders')).code).toBe(1);
    expect((await json('list')).subscriptions).toHaveLength(1);
    expect(await (await ask('GET', '/metrics')).text()).not.toContain('group_name="senders"');
  });
});
