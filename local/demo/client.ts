import { CommandError } from '../cli/failure.ts';
import { EXIT } from '../cli/io.ts';
import type { DemoEvent } from './payloads.ts';

/** Longest time in milliseconds that one call may take. */
const CALL_MS_MAX = 30_000;

export interface ReadEvent {
  readonly eventNumber: number;
  readonly eventId: string;
  readonly eventType: string;
  readonly data: unknown;
}

/** What the demo needs of a node, over its public HTTP interface. */
export class NodeClient {
  readonly #base: string;
  readonly #headers: Record<string, string>;

  /** `node` may carry credentials. */
  constructor(node: string, user?: string, password?: string) {
    const url = new URL(node);
    const name = decodeURIComponent(url.username) || user;
    const secret = decodeURIComponent(url.password) || password || '';
    this.#headers = name ? { authorization: `Basic ${Buffer.from(`${name}:${secret}`).toString('base64')}` } : {};
    url.username = '';
    url.password = '';
    this.#base = url.href.replace(/\/+$/, '');
  }

  /** Appends a batch. The number of its first event, or null when the stream is deleted for ever. */
  async append(stream: string, expectedVersion: number, events: readonly DemoEvent[]): Promise<number | null> {
    const response = await this.#call('POST', stream, '', {
      'content-type': 'application/vnd.eventstore.events+json', 'es-expectedversion': String(expectedVersion),
    }, JSON.stringify(events));
    if (response.status === 410) return null;
    await expectStatus(response, 201, `appending to ${stream}`);
    return Number(/\/(\d+)$/.exec(response.headers.get('location') ?? '')?.[1]);
  }

  /** The events of a stream from a number on, or null when there is no such stream. */
  async read(stream: string, from: number): Promise<ReadEvent[] | null> {
    const response = await this.#call('GET', stream, `?from=${from}`, { accept: 'application/x-ndjson' });
    if (response.status === 404 || response.status === 410) return null;
    await expectStatus(response, 200, `reading ${stream}`);
    const lines = (await response.text()).split('\n').filter((text) => text !== '');
    return lines.map((text) => {
      const event = JSON.parse(text) as { eventNumber: number; eventId: string; eventType: string; data: string };
      return { ...event, data: JSON.parse(event.data) as unknown };
    });
  }

  /** Deletes a stream. False when there was none, or it was deleted before. */
  async delete(stream: string, kind: 'soft' | 'hard'): Promise<boolean> {
    const response = await this.#call('DELETE', stream, '', kind === 'hard' ? { 'es-harddelete': 'true' } : {});
    if (response.status === 410 || response.status === 400) return false;
    await expectStatus(response, 204, `deleting ${stream}`);
    return true;
  }

  /** The status of reading a stream. */
  async status(stream: string): Promise<number> {
    return (await this.#call('GET', stream, '/head/backward/1', { accept: 'application/json' })).status;
  }

  async #call(method: string, stream: string, rest: string, headers: Record<string, string>, body?: string): Promise<Response> {
    const url = `${this.#base}/streams/${encodeURIComponent(stream)}${rest}`;
    try {
      const init = { method, headers: { ...this.#headers, ...headers }, signal: AbortSignal.timeout(CALL_MS_MAX) };
      return await fetch(url, body === undefined ? init : { ...init, body });
    } catch (error) {
      const cause = (error as Error).cause as NodeJS.ErrnoException | undefined;
      const reason = cause?.code ?? cause?.message ?? (error as Error).message;
      throw new CommandError('node_unreachable', `No node answers at ${this.#base} (${reason}). Start one in another terminal with \`npm start\`, or name another one with --node URL.`, EXIT.unreachable);
    }
  }
}

async function expectStatus(response: Response, status: number, what: string): Promise<void> {
  if (response.status === status) return;
  const text = (await response.text()).slice(0, 500);
  const isRefused = response.status === 401 || response.status === 403;
  throw new CommandError('unexpected_answer', `The node answered ${response.status} ${response.statusText} when ${what}. ${text}`, isRefused ? EXIT.refused : EXIT.failed);
}
