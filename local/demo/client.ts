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

  /** Appends a batch and gives the number of its first event. */
  async append(stream: string, expectedVersion: number, events: readonly DemoEvent[]): Promise<number> {
    const response = await this.#call('POST', stream, '', {
      'content-type': 'application/vnd.eventstore.events+json', 'es-expectedversion': String(expectedVersion),
    }, JSON.stringify(events));
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

  async delete(stream: string, kind: 'soft' | 'hard'): Promise<void> {
    const response = await this.#call('DELETE', stream, '', kind === 'hard' ? { 'es-harddelete': 'true' } : {});
    await expectStatus(response, 204, `deleting ${stream}`);
  }

  /** Whether and how a stream is deleted. A soft delete leaves metadata that hides every event. */
  async deletionOf(stream: string): Promise<'soft' | 'hard' | null> {
    const response = await this.#call('GET', stream, '/metadata', { accept: 'application/json' });
    if (response.status === 410) return 'hard';
    if (response.status === 404) return null;
    await expectStatus(response, 200, `reading the metadata of ${stream}`);
    return /"\$tb":\s*9223372036854775807\b/.test(await response.text()) ? 'soft' : null;
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
