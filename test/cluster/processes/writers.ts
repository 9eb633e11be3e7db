import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Operation, Outcome } from '../../shared-log/processes/history.ts';
import type { Random } from '../../support/random.ts';
import { ask, codeOf, NoAnswer } from './http.ts';
import type { Answer } from './http.ts';
import type { Member } from './member.ts';

const EVENTS = 'application/vnd.eventstore.events+json';
const ONE_EVENT = 'application/vnd.eventstore.event+json';
const ANY = -2;
/** Streams in which all that was acknowledged stays; each is written by all writers. */
export const KEPT_STREAMS = 6;
/** Characters of data of an event, at most. */
const DATA_MAX = 1_500;
/**
 * Longest that a request may stay undecided while it is repeated, in milliseconds: some members are well all the time,
 * and a machine may stand still for a while.
 */
const UNDECIDED_MS_MAX = 300_000;
/** Pause before a request is repeated, in milliseconds, at most. */
const REPEAT_MS_MAX = 100;
/** For which a writer leaves a member alone that did not answer, in milliseconds. */
const AVOID_MS = 1_000;
/** Who leads may have been told otherwise within this time, in milliseconds (rule 12 of core/cluster/README.md). */
const LEADER_AGE_MS = 1_000;
/** Statuses with which a member says that another one, or a later moment, may do better. */
const AGAIN = new Set([429, 503, 507]);

export interface Tally {
  [what: string]: number;
}

export function count(tally: Tally, what: string): void {
  tally[what] = (tally[what] ?? 0) + 1;
}

export interface WritersReport {
  readonly operations: Operation[];
  readonly problems: string[];
  /** Answers other than success, by status and code, and lost ones. */
  readonly answers: Tally;
  /** When each append was acknowledged, in order. */
  readonly acknowledgedMs: number[];
  ownReads: number;
  /** Events that a member did not show although it had acknowledged them, while its disk was full. */
  lateOwnReads: number;
  leaderReads: number;
  localReads: number;
}

/** What writers share. */
export interface Writing {
  readonly members: readonly Member[];
  readonly report: WritersReport;
  readonly nowMs: () => number;
  /** The copy of this member could not take anything at some time since then. */
  wasFull(member: Member, sinceMs: number): boolean;
  /** By member and stream: the last event that a finished read has shown there. */
  readonly shown: Map<string, number>;
}

export function newReport(): WritersReport {
  return {
    operations: [],
    problems: [],
    answers: {},
    acknowledgedMs: [],
    ownReads: 0,
    lateOwnReads: 0,
    leaderReads: 0,
    localReads: 0,
  };
}

/**
 * One client: it appends, with and without expected versions, at any member, repeats with the same ids until it knows,
 * and reads.
 */
export class Writer {
  readonly #number: number;
  readonly #random: Random;
  readonly #writing: Writing;
  readonly #known = new Map<string, number>();
  /** Until when a member is left alone that did not answer. */
  readonly #avoidedUntilMs = new Map<Member, number>();

  constructor(number: number, random: Random, writing: Writing) {
    this.#number = number;
    this.#random = random;
    this.#writing = writing;
  }

  async run(isOver: () => boolean, pauseMs: number): Promise<void> {
    while (!isOver()) {
      const stream = `kept-${this.#random.int(0, KEPT_STREAMS - 1)}`;
      const what = this.#random.int(0, 9);
      if (what === 0) await this.#readLeader(stream);
      else if (what <= 2) await this.#readHere(stream);
      else await this.#append(stream);
      await sleep(this.#random.int(0, 2 * pauseMs));
    }
  }

  async #append(stream: string): Promise<void> {
    const { report, nowMs } = this.#writing;
    const asked = this.#random.chance(0.5) ? ANY : (this.#known.get(stream) ?? -1);
    const ids = Array.from({ length: this.#random.int(1, 3) }, () => randomUUID());
    const body = JSON.stringify(
      ids.map((eventId) => ({
        eventId,
        eventType: 'kept',
        data: { id: eventId, text: 'x'.repeat(this.#random.int(0, DATA_MAX)) },
      })),
    );
    const startMs = nowMs();
    const done = (outcome: Outcome): void => {
      report.operations.push({
        writer: this.#number,
        stream,
        ids,
        asked,
        startMs,
        endMs: outcome.kind === 'unknown' ? Number.MAX_VALUE : nowMs(),
        outcome,
      });
    };
    for (let tries = 0; ; tries++) {
      const member = this.#pick();
      const sentMs = nowMs();
      const answer = await this.#ask(`${member.url}/streams/${stream}`, {
        method: 'POST',
        headers: { 'content-type': EVENTS, 'es-expectedversion': String(asked) },
        body,
      });
      if (answer?.status === 201) {
        const first = Number(/\/(\d+)$/.exec(String(answer.headers.location))?.[1] ?? Number.NaN);
        this.#known.set(stream, first + ids.length - 1);
        done({ kind: 'appended', first, last: first + ids.length - 1, isRepeat: tries > 0 });
        report.acknowledgedMs.push(nowMs());
        if (this.#random.chance(0.3)) await this.#readOwn(member, stream, first, ids[0]!, sentMs);
        return;
      }
      if (answer?.status === 400 && codeOf(answer) === 'wrong_expected_version') {
        const actual = Number(answer.headers['es-currentversion']);
        this.#known.set(stream, actual);
        return done({ kind: 'conflict', actual });
      }
      if (answer !== null && !AGAIN.has(answer.status)) {
        report.problems.push(
          `${member.name} answered an append to ${stream} with ${answer.status}: ${answer.text.slice(0, 300)}`,
        );
        return done({ kind: 'unknown' });
      }
      if (nowMs() - startMs > UNDECIDED_MS_MAX) {
        report.problems.push(
          `an append to ${stream} is undecided after ${tries + 1} tries, the last at ${member.name}: ${answer === null ? 'no answer' : `${answer.status} ${answer.text.slice(0, 300)}`}`,
        );
        return done({ kind: 'unknown' });
      }
      await sleep(this.#random.int(0, REPEAT_MS_MAX));
    }
  }

  /** What a member has acknowledged it shows at once. */
  async #readOwn(member: Member, stream: string, number: number, id: string, sinceMs: number): Promise<void> {
    const { report } = this.#writing;
    const answer = await this.#ask(`${member.url}/streams/${stream}/${number}`, { headers: { accept: ONE_EVENT } });
    if (answer === null || AGAIN.has(answer.status)) return;
    report.ownReads++;
    if (answer.status === 200 && answer.text.includes(id)) return;
    if (answer.status === 404 && this.#writing.wasFull(member, sinceMs)) report.lateOwnReads++;
    else
      report.problems.push(
        `${member.name} acknowledged ${id} as event ${number} of ${stream}, and answered a read of it with ${answer.status}: ${answer.text.slice(0, 300)}`,
      );
  }

  /** A read that only the leader answers shows all that was acknowledged anywhere a second before it. */
  async #readLeader(stream: string): Promise<void> {
    const { report, nowMs, members } = this.#writing;
    const startMs = nowMs();
    let url = `${this.#pick().url}/streams/${stream}/head`;
    for (let hops = 0; hops < members.length; hops++) {
      const answer = await this.#ask(url, { headers: { accept: ONE_EVENT, 'es-requireleader': 'True' } });
      if (answer === null || AGAIN.has(answer.status)) return;
      if (answer.status !== 307) {
        const number = lastOf(answer);
        if (number === null) report.problems.push(`${url} answered ${answer.status}: ${answer.text.slice(0, 300)}`);
        else
          report.operations.push({
            writer: this.#number,
            stream,
            ids: [],
            asked: 'read',
            startMs,
            endMs: nowMs(),
            outcome: { kind: 'last', number, ageMs: LEADER_AGE_MS },
          });
        report.leaderReads++;
        return;
      }
      url = String(answer.headers.location);
    }
  }

  /** What a member has shown once it shows for ever. */
  async #readHere(stream: string): Promise<void> {
    const { report, shown } = this.#writing;
    const member = this.#pick();
    const key = `${member.name} ${stream}`;
    const before = shown.get(key) ?? -1;
    const answer = await this.#ask(`${member.url}/streams/${stream}/head`, { headers: { accept: ONE_EVENT } });
    if (answer === null || AGAIN.has(answer.status)) return;
    report.localReads++;
    const number = lastOf(answer);
    if (number === null)
      report.problems.push(
        `${member.name} answered a read of ${stream} with ${answer.status}: ${answer.text.slice(0, 300)}`,
      );
    else if (number < before)
      report.problems.push(
        `${member.name} showed event ${number} of ${stream} as the last one, and event ${before} before that`,
      );
    else shown.set(key, Math.max(shown.get(key) ?? -1, number));
  }

  #pick(): Member {
    const { members, nowMs } = this.#writing;
    const good = members.filter((member) => (this.#avoidedUntilMs.get(member) ?? 0) < nowMs());
    return this.#random.pick(good.length > 0 ? good : members);
  }

  async #ask(url: string, asked: Parameters<typeof ask>[1]): Promise<Answer | null> {
    const {
      report: { answers },
      members,
      nowMs,
    } = this.#writing;
    try {
      const answer = await ask(url, asked);
      if (answer.status >= 300 && answer.status !== 404) count(answers, `${answer.status} ${codeOf(answer)}`.trim());
      return answer;
    } catch (error) {
      if (!(error instanceof NoAnswer)) throw error;
      count(answers, error.code);
      const member = members.find((one) => url.startsWith(`${one.url}/`));
      if (member !== undefined) this.#avoidedUntilMs.set(member, nowMs() + AVOID_MS);
      return null;
    }
  }
}

/** Number of the last event; -1 where the stream is not there, null for an answer that says neither. */
function lastOf({ status, text }: Answer): number | null {
  if (status === 404) return -1;
  const found = status === 200 ? /"eventNumber":\s*(\d+)/.exec(text) : null;
  return found === null ? null : Number(found[1]);
}
