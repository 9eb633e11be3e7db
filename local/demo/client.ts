import type { NodeClient } from '../node-client.ts';
import { expectStatus } from '../node-client.ts';
import type { DemoEvent } from './payloads.ts';

export interface ReadEvent {
  readonly eventNumber: number;
  readonly eventId: string;
  readonly eventType: string;
  readonly data: unknown;
}

/** What an earlier run has done to a stream: deleted it, or limited how many of its events stay. */
export type StreamFate = 'soft' | 'hard' | 'limited';

/** What the demo needs of streams. */
export class StreamClient {
  readonly #node: NodeClient;

  constructor(node: NodeClient) {
    this.#node = node;
  }

  /** Appends a batch and gives the number of its first event. */
  async append(stream: string, expectedVersion: number, events: readonly DemoEvent[]): Promise<number> {
    const response = await this.#call('POST', stream, '', {
      'content-type': 'application/vnd.eventstore.events+json', 'es-expectedversion': String(expectedVersion),
    }, JSON.stringify(events));
    await expectStatus(response, [201], `appending to ${stream}`);
    return Number(/\/(\d+)$/.exec(response.headers.get('location') ?? '')?.[1]);
  }

  /** The events of a stream from a number on, or null when there is no such stream. */
  async read(stream: string, from: number): Promise<ReadEvent[] | null> {
    const response = await this.#call('GET', stream, `?from=${from}`, { accept: 'application/x-ndjson' });
    if (response.status === 404 || response.status === 410) return null;
    const text = await expectStatus(response, [200], `reading ${stream}`);
    return text.split('\n').filter((line) => line !== '').map((line) => {
      const event = JSON.parse(line) as { eventNumber: number; eventId: string; eventType: string; data: string };
      return { ...event, data: JSON.parse(event.data) as unknown };
    });
  }

  async delete(stream: string, kind: 'soft' | 'hard'): Promise<void> {
    const response = await this.#call('DELETE', stream, '', kind === 'hard' ? { 'es-harddelete': 'true' } : {});
    await expectStatus(response, [204], `deleting ${stream}`);
  }

  /** Keeps only the newest events of a stream visible. */
  async limit(stream: string, eventId: string, maxCount: number): Promise<void> {
    const response = await this.#call('POST', stream, '/metadata', { 'content-type': 'application/vnd.eventstore.events+json' },
      JSON.stringify([{ eventId, eventType: '$metadata', data: { $maxCount: maxCount } }]));
    await expectStatus(response, [201], `setting the metadata of ${stream}`);
  }

  /** What its metadata says of a stream. A soft delete leaves metadata that hides every event. */
  async fateOf(stream: string): Promise<StreamFate | null> {
    const response = await this.#call('GET', stream, '/metadata', { accept: 'application/json' });
    if (response.status === 410) return 'hard';
    if (response.status === 404) return null;
    const text = await expectStatus(response, [200], `reading the metadata of ${stream}`);
    if (/"\$tb":\s*9223372036854775807\b/.test(text)) return 'soft';
    return /"\$maxCount":/.test(text) ? 'limited' : null;
  }

  #call(method: string, stream: string, rest: string, headers: Record<string, string>, body?: string): Promise<Response> {
    return this.#node.call(method, `/streams/${encodeURIComponent(stream)}${rest}`, { headers, ...(body !== undefined && { body }) });
  }
}
