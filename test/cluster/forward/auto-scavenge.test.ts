import { afterEach, expect, test } from 'vitest';
import { SkuaError } from '../../../core/base/errors.ts';
import { FakeAutoScavenge } from '../../support/fake-auto-scavenge.ts';
import { Members, silent } from './kit.ts';

/**
 * Commands of auto-scavenge at a member that does not lead; the numbers are those of the scenarios of auto-scavenge.
 */

let members: Members;

afterEach(() => members.close());

async function two() {
  members = new Members();
  const drivers: FakeAutoScavenge[] = [];
  const withDriver = () => {
    const autoScavenge = new FakeAutoScavenge();
    drivers.push(autoScavenge);
    return { autoScavenge };
  };
  const [leader, follower] = [await members.open(withDriver), await members.open(withDriver)];
  await members.leads(leader, follower);
  return { leader, follower, at: drivers[0]!, here: drivers[1]! };
}

const JSON_TYPE = { 'content-type': 'application/json' };

test('90: go to the leader, and are answered as it answers', async () => {
  const { leader, follower, at, here } = await two();
  at.pausesAtOnce = false;
  for (const [method, path, body] of [
    ['POST', 'pause', null],
    ['POST', 'resume', null],
    ['POST', 'configure', '{"schedule":"0 0 * * *"}'],
    ['GET', 'status', null],
  ] as const) {
    const [there, asked] = [
      await leader.send(method, `/auto-scavenge/${path}`, body === null ? {} : JSON_TYPE, body),
      await follower.send(method, `/auto-scavenge/${path}`, body === null ? {} : JSON_TYPE, body),
    ];
    expect([asked.status, asked.reason, asked.text, asked.headers.get('content-type')]).toEqual([
      there.status,
      there.reason,
      there.text,
      there.headers.get('content-type'),
    ]);
  }
  expect([at.calls.length, here.calls]).toEqual([8, []]);
  here.off = 'The licence of this member has expired.';
  expect(JSON.parse((await follower.send('GET', '/auto-scavenge/enabled')).text)).toMatchObject({ enabled: false });
});

test('91: what the leader refuses is told in its own words', async () => {
  const { follower, at } = await two();
  at.error = new SkuaError('auto_scavenge_pausing', 'Auto scavenge process is currently pausing');
  const reply = await follower.send('POST', '/auto-scavenge/resume');
  expect([reply.status, JSON.parse(reply.text).detail]).toEqual([400, 'Auto scavenge process is currently pausing']);
});

test('92: a leader that does not answer leaves it open; with none, no command is taken anywhere', async () => {
  const { follower, here } = await two();
  members.wire = async () => {
    throw silent();
  };
  expect(JSON.parse((await follower.send('POST', '/auto-scavenge/pause')).text)).toMatchObject({
    code: 'commit_outcome_unknown',
  });
  follower.lead.knows(null);
  here.error = new SkuaError('not_leader', 'Node is not the leader', { leader: null });
  const reply = await follower.send('POST', '/auto-scavenge/pause');
  expect([reply.status, JSON.parse(reply.text).code]).toEqual([503, 'no_leader']);
});
