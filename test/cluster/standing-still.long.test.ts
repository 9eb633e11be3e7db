import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { ClientCluster } from './clients/members.ts';
import { ask, codeOf, NoAnswer } from './processes/http.ts';
import type { Answer } from './processes/http.ts';
import type { Member } from './processes/member.ts';

/** Members as processes that stand still (SIGSTOP), which break no connection and answer nothing. */

const EVENTS = 'application/vnd.eventstore.events+json';
const PATIENCE_MS = 1_000;
/** Longer than a member notices as a standstill, and than its patience. */
const STOPPED_MS = 4_000;
/** What two of three that stand still may cost: the silence of the leader, and some seconds. It was 40 s. */
const UNKNOWN_MS_MAX = 20_000;
const ANSWER_MS = 120_000;
const LOOK_MS = 50;

let cluster: ClientCluster;

afterEach(() => cluster.stop());

function append({ url }: Member, stream: string, id: string, timeoutMs = ANSWER_MS): Promise<Answer> {
  return ask(`${url}/streams/${stream}`, {
    method: 'POST',
    headers: { 'content-type': EVENTS },
    body: JSON.stringify([{ eventId: id, eventType: 't', data: {} }]),
    timeoutMs,
  });
}

/** As a client does: again, with the same id, until it is acknowledged. */
async function appended(member: Member, stream: string): Promise<string> {
  const id = randomUUID();
  await expect
    .poll(async () => (await append(member, stream, id)).status, { interval: LOOK_MS, timeout: ANSWER_MS })
    .toBe(201);
  return id;
}

async function idsOf({ url }: Member, stream: string): Promise<string[]> {
  const { text } = await ask(`${url}/streams/${stream}/0/forward/100?embed=body`, {
    headers: { accept: 'application/json' },
  });
  return (JSON.parse(text) as { entries: { eventId: string }[] }).entries.map(({ eventId }) => eventId).toReversed();
}

test('what a member has got before, or while, it stood still is not written when it goes on; and with two of three standing still a write is not kept waiting', async () => {
  cluster = await ClientCluster.start(false, 3, { SERVER_FORWARD_PATIENCE_MS: String(PATIENCE_MS) });
  const leader = await cluster.leader();
  await cluster.settled();
  const [follower, third] = cluster.members.filter((member) => member !== leader);
  const first = await appended(follower!, 's');
  follower!.signal('SIGSTOP');
  // One client hangs up, the other one waits.
  await expect(append(follower!, 's', randomUUID(), 500)).rejects.toBeInstanceOf(NoAnswer);
  const waiting = append(follower!, 's', randomUUID());
  await sleep(STOPPED_MS);
  follower!.signal('SIGCONT');
  expect(codeOf(await waiting)).toBe('write_expired');
  const second = await appended(follower!, 's');
  expect(await idsOf(follower!, 's')).toEqual([first, second]);

  leader.signal('SIGSTOP');
  follower!.signal('SIGSTOP');
  const startMs = performance.now();
  const id = randomUUID();
  expect(codeOf(await append(third!, 's', id))).toBe('commit_outcome_unknown');
  expect(performance.now() - startMs).toBeLessThan(UNKNOWN_MS_MAX);
  expect((await append(third!, 's', randomUUID())).status).toBe(201);
  // Its client repeats it, and it is there once, whatever those make of it who go on.
  expect((await append(third!, 's', id)).status).toBe(201);
  leader.signal('SIGCONT');
  follower!.signal('SIGCONT');
  const last = await appended(leader, 's');
  const ids = await idsOf(leader, 's');
  expect([ids.slice(0, 2), ids.at(-1), new Set(ids).size, ids.includes(id)]).toEqual([
    [first, second],
    last,
    ids.length,
    true,
  ]);
  expect(cluster.problems).toEqual([]);
});
