import type { NodeClient } from '../node-client.ts';
import { expectStatus } from '../node-client.ts';
import { DELIVERY_HEADER } from './connector.ts';

export interface ReadEvent {
  readonly eventNumber: number;
  readonly eventId: string;
  readonly eventType: string;
  /** As it was received, to the byte. */
  readonly data: string;
  /** Of the webhook that it came with. */
  readonly deliveryId: string | null;
}

/** What an earlier run has done to a stream: deleted it, or limited how many of its events stay. */
export type StreamFate = 'soft' | 'hard' | 'limited';

/** What the demo needs of streams. */
export class StreamClient {
  readonly #node: NodeClient;

  constructor(node: NodeClient) {
    this.#node = node;
  }

  /** The events of a stream, or null when there is no such stream. */
  async read(stream: string): Promise<ReadEvent[] | null> {
    const response = await this.#call('GET', stream, '', { accept: 'application/x-ndjson' });
    if (response.status === 404 || response.status === 410) return null;
    const text = await expectStatus(response, [200], `reading ${stream}`);
    return text.split('\n').filter((line) => line !== '').map((line) => {
      const { eventNumber, eventId, eventType, data, metaData } = JSON.parse(line) as Omit<ReadEvent, 'deliveryId'> & { metaData: string | null };
      const headers = JSON.parse(metaData ?? '{}') as Record<string, string>;
      return { eventNumber, eventId, eventType, data, deliveryId: headers[DELIVERY_HEADER] ?? null };
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
