import { request } from 'node:http';
import type { ClientRequest } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { agent } from './http.ts';
import type { Member } from './member.ts';

/** Between the end of a connection and the next one, in milliseconds. */
const RECONNECT_MS = 200;
/** A connection on which nothing comes for so long, not even a sign of life, is given up, in milliseconds. */
const SILENT_MS_MAX = 30_000;
/** Of one subscriber: what follows from the first ones need not be told. */
const PROBLEMS_MAX = 20;
const KEPT = /^kept-\d+$/;

/** Follows `$all`, or one stream, at one member, and goes on behind what it saw last whenever the connection breaks. */
export class Subscriber {
  readonly problems: string[] = [];
  /** By stream: ids of the events of streams that are kept, by their number. */
  readonly seen = new Map<string, string[]>();
  readonly member: Member;
  readonly #path: string;
  readonly #isAll: boolean;
  events = 0;
  connections = 0;
  #lastId: string | null = null;
  #lastPosition = -1;
  #isOver = false;
  #request: ClientRequest | null = null;

  /** `stream` null for all. */
  constructor(member: Member, stream: string | null) {
    this.member = member;
    this.#isAll = stream === null;
    this.#path = `/streams/${stream ?? '$all'}`;
  }

  get name(): string {
    return `the subscriber of ${this.#path} at ${this.member.name}`;
  }

  async run(): Promise<void> {
    while (!this.#isOver) {
      await this.#follow();
      if (!this.#isOver) await sleep(RECONNECT_MS);
    }
  }

  stop(): void {
    this.#isOver = true;
    this.#request?.destroy();
  }

  #follow(): Promise<void> {
    return new Promise((resolve) => {
      const headers = { accept: 'text/event-stream', ...(this.#lastId !== null && { 'last-event-id': this.#lastId }) };
      // A connection of its own: it never ends.
      const asked = request(`${this.member.url}${this.#path}`, { headers, agent: false });
      this.#request = asked;
      asked.setTimeout(SILENT_MS_MAX, () => asked.destroy());
      asked.on('error', () => resolve());
      asked.on('close', () => resolve());
      asked.on('response', (response) => {
        if (response.statusCode !== 200) {
          // 404: the stream is not there yet.
          if (![404, 503, 507].includes(response.statusCode ?? 0))
            this.problems.push(`${this.name} was answered with ${response.statusCode}`);
          response.resume();
          return;
        }
        this.connections++;
        let rest = '';
        response.setEncoding('utf8');
        response.on('error', () => {});
        response.on('data', (text: string) => {
          const messages = (rest + text).split('\n\n');
          rest = messages.pop()!;
          for (const message of messages) this.#take(message);
        });
      });
      asked.end();
    });
  }

  #take(message: string): void {
    let id: string | null = null;
    let data = '';
    let event = '';
    for (const line of message.split('\n')) {
      if (line.startsWith('id: ')) id = line.slice(4);
      else if (line.startsWith('data: ')) data = line.slice(6);
      else if (line.startsWith('event: ')) event = line.slice(7);
    }
    if (event === 'error') {
      // The store goes: another connection will say where it is.
      if (
        !/"code":"(store_closed|aborted|not_ready|too_busy|storage_unreachable|writer_stopped|stream_not_found)"/.test(
          data,
        )
      )
        this.problems.push(`${this.name} was told: ${data.slice(0, 300)}`);
      return;
    }
    if (id !== null) this.#lastId = id;
    if (event !== '' || id === null) return;
    this.events++;
    const { streamId, eventNumber, eventId, position } = JSON.parse(data) as {
      streamId: string;
      eventNumber: number;
      eventId: string;
      position: string;
    };
    const at = Number(position.split('/')[0]);
    if (at <= this.#lastPosition && this.problems.length < PROBLEMS_MAX)
      this.problems.push(`${this.name} saw position ${at} behind ${this.#lastPosition}`);
    this.#lastPosition = at;
    if (!KEPT.test(streamId)) return;
    const ids = this.seen.get(streamId) ?? [];
    this.seen.set(streamId, ids);
    if (eventNumber !== ids.length && this.problems.length < PROBLEMS_MAX)
      this.problems.push(`${this.name} saw event ${eventNumber} of ${streamId} where ${ids.length} comes next`);
    ids[eventNumber] = eventId;
  }

  /** Whether all these events were seen, each once and in order (what came at another place is a problem already). */
  missing(stream: string, ids: readonly string[]): string | null {
    if (!this.#isAll && this.#path !== `/streams/${stream}`) return null;
    const seen = this.seen.get(stream) ?? [];
    if (seen.length !== ids.length) return `${this.name} saw ${seen.length} of ${ids.length} events of ${stream}`;
    const wrong = ids.findIndex((id, number) => seen[number] !== id);
    return wrong < 0 ? null : `${this.name} saw ${seen[wrong]} as event ${wrong} of ${stream}, which is ${ids[wrong]}`;
  }
}

export function closeConnections(): void {
  agent.destroy();
}
