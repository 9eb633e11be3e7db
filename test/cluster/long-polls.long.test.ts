import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { ClientCluster } from './clients/members.ts';
import { ask } from './processes/http.ts';
import type { Answer, Asked } from './processes/http.ts';

const ROUNDS = 8;
/** Who waits for more of `$all` at each member at a time. */
const READERS = 3;
const LOOK_MS = 20;
const LAST = 'the last one';
const EVENTS = 'application/vnd.eventstore.events+json';
/** For an answer, in milliseconds: only a member that stands still takes so long. */
const ANSWER_MS = 120_000;

interface Page {
  readonly entries: readonly { readonly summary: string }[];
  readonly links: readonly { readonly relation: string; readonly uri: string }[];
}

test('who waits for more of $all while scavenges end chunks is told of all that comes, and members answer others meanwhile', async () => {
  const cluster = await ClientCluster.start(false, 3);
  const answered = async (url: string, asked: Asked, statuses: readonly number[]): Promise<Answer> => {
    const answer = await ask(url, { timeoutMs: ANSWER_MS, ...asked });
    expect(statuses, `${url}: ${answer.text}`).toContain(answer.status);
    return answer;
  };
  /** Until it is acknowledged: a disk that stands still for a while leaves it undecided. */
  const append = async (url: string, type: string): Promise<void> => {
    const body = JSON.stringify([{ eventId: randomUUID(), eventType: type, data: {} }]);
    await expect
      .poll(
        async () =>
          (
            await answered(
              `${url}/streams/letters`,
              { method: 'POST', headers: { 'content-type': EVENTS }, body },
              [201, 503],
            )
          ).status,
        { interval: LOOK_MS },
      )
      .toBe(201);
  };
  /** Reads on from the beginning until it has met the last event. */
  const follow = async (url: string): Promise<void> => {
    for (let next = `${url}/streams/%24all/${'0'.repeat(32)}/forward/20`, isOver = false; !isOver;) {
      const { text } = await answered(next, { headers: { accept: 'application/json', 'es-longpoll': '5' } }, [200]);
      const { entries, links } = JSON.parse(text) as Page;
      isOver = entries.some(({ summary }) => summary === LAST);
      next = links.find(({ relation }) => relation === 'previous')?.uri ?? next;
    }
  };
  try {
    const urls = cluster.members.map((member) => member.url);
    const readers = urls.flatMap((url) => Array.from({ length: READERS }, () => follow(url)));
    const write = async (): Promise<void> => {
      for (let round = 0; round < ROUNDS; round++) {
        for (const url of urls) {
          await append(url, 'posted');
          // While one is under way another is refused.
          await expect
            .poll(async () => (await answered(`${url}/admin/scavenge`, { method: 'POST' }, [200, 409, 503])).status, {
              interval: LOOK_MS,
            })
            .toBe(200);
        }
      }
      await append(urls[0]!, LAST);
    };
    await Promise.all([write(), ...readers]);
    expect(cluster.problems).toEqual([]);
  } finally {
    await cluster.stop();
  }
});
