import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../../support/random.ts';
import { ask, codeOf } from './http.ts';
import type { Asked } from './http.ts';
import type { Member } from './member.ts';
import { count } from './writers.ts';
import type { Tally } from './writers.ts';

const EVENTS = 'application/vnd.eventstore.events+json';
/** Streams that keep only their last events. */
const TRIMMED_STREAMS = 4;
const MAX_COUNT = 5;
const TRIMMED_DATA = 2_000;
const PAUSE_MS_MAX = 400;
/** One in so many turns starts or stops a scavenge. */
const SCAVENGE_EVERY = 10;
const SCHEDULE = '{"schedule":"* * * * *"}';
const PROBLEMS_MAX = 20;

/**
 * Writes what scavenges may remove, deletes streams, and starts and stops scavenges at all members; auto-scavenge runs
 * every minute.
 */
export class Scavenging {
  readonly problems: string[] = [];
  readonly answers: Tally = {};
  readonly #members: readonly Member[];
  readonly #random: Random;
  /** Streams whose deletion was acknowledged, and by which member. */
  readonly #deleted: { readonly stream: string; readonly member: Member }[] = [];
  #isScheduled = false;

  constructor(members: readonly Member[], random: Random) {
    this.#members = members;
    this.#random = random;
  }

  get deleted(): number {
    return this.#deleted.length;
  }

  async run(isOver: () => boolean): Promise<void> {
    for (let i = 0; i < TRIMMED_STREAMS; i++) await this.#limit(`trimmed-${i}`, isOver);
    for (let turn = 0; !isOver(); turn++) {
      if (!this.#isScheduled)
        this.#isScheduled =
          (await this.#ask('configure', '/auto-scavenge/configure', {
            method: 'POST',
            headers: { 'content-type': 'application/json' },
            body: SCHEDULE,
          })) === 200;
      await this.#post(`trimmed-${this.#random.int(0, TRIMMED_STREAMS - 1)}`, 3);
      if (this.#random.int(1, SCAVENGE_EVERY) === 1) await this.#scavenge();
      if (this.#random.chance(0.1)) await this.#delete(`doomed-${turn}`);
      if (this.#random.chance(0.2) && this.#deleted.length > 0) await this.#lookAt(this.#random.pick(this.#deleted));
      await sleep(this.#random.int(0, PAUSE_MS_MAX));
    }
  }

  /** Once all is well: no member shows what was deleted. */
  async judge(): Promise<void> {
    for (const member of this.#members) for (const { stream } of this.#deleted) await this.#lookAt({ stream, member });
  }

  async #limit(stream: string, isOver: () => boolean): Promise<void> {
    const body = JSON.stringify([{ eventId: randomUUID(), eventType: '$metadata', data: { $maxCount: MAX_COUNT } }]);
    while (
      !isOver() &&
      (await this.#ask('limit', `/streams/${stream}/metadata`, {
        method: 'POST',
        headers: { 'content-type': EVENTS },
        body,
      })) !== 201
    )
      await sleep(PAUSE_MS_MAX);
  }

  #post(stream: string, events: number): Promise<number> {
    const body = JSON.stringify(
      Array.from({ length: events }, () => ({
        eventId: randomUUID(),
        eventType: 'passing',
        data: { text: 'x'.repeat(TRIMMED_DATA) },
      })),
    );
    return this.#ask('append', `/streams/${stream}`, { method: 'POST', headers: { 'content-type': EVENTS }, body });
  }

  async #scavenge(): Promise<void> {
    if (this.#random.chance(0.2)) await this.#ask('stop', '/admin/scavenge/current', { method: 'DELETE' });
    else
      await this.#ask(
        this.#random.chance(0.3) ? 'scavenge, sync only' : 'scavenge',
        `/admin/scavenge?threads=1${this.#random.chance(0.3) ? '&syncOnly=true' : ''}`,
        { method: 'POST', headers: { 'content-length': '0' } },
      );
  }

  async #delete(stream: string): Promise<void> {
    if ((await this.#post(stream, 2)) !== 201) return;
    const member = this.#random.pick(this.#members);
    const status = await this.#ask(
      'delete',
      `/streams/${stream}`,
      { method: 'DELETE', headers: { 'es-harddelete': 'true' } },
      member,
    );
    if (status !== 204) return;
    this.#deleted.push({ stream, member });
    await this.#lookAt({ stream, member });
  }

  /** What a member has acknowledged it does not show again; others come to know of it in their time (`judge`). */
  async #lookAt({ stream, member }: { readonly stream: string; readonly member: Member }): Promise<void> {
    const answer = await ask(`${member.url}/streams/${stream}/0`).catch(() => null);
    if (answer !== null && answer.status === 200 && this.problems.length < PROBLEMS_MAX)
      this.problems.push(`${member.name} shows event 0 of ${stream}, whose deletion was acknowledged`);
  }

  async #ask(what: string, path: string, asked: Asked, member = this.#random.pick(this.#members)): Promise<number> {
    const answer = await ask(`${member.url}${path}`, asked).catch(() => null);
    count(this.answers, `${what}: ${answer === null ? 'no answer' : `${answer.status} ${codeOf(answer)}`.trim()}`);
    return answer?.status ?? 0;
  }
}
