import { inParallel } from '../../core/base/in-parallel.ts';
import type { LineDocument } from '../../handlers/documents/streams.ts';
import { expectStatus } from '../cli/node-client.ts';
import type { NodeClient } from '../cli/node-client.ts';
import { DELIVERY_HEADER } from './connector.ts';
import type { DemoConnector } from './connector.ts';
import type { DemoDelivery, DemoStream } from './demo-payloads.ts';

/** What the demo does to streams at its end: one keeps only its newest events, two are deleted. */
const FATES: Readonly<Record<string, StreamFate>> = {
  'github-Codertocat-Hello-World': 'limited',
  'github-Octocoders-Hello-World': 'soft',
  'github-lineville-elastic-machines-testing': 'hard',
};
/** Deleted (soft) behind the demo's own scavenge, so that the next one has something to remove. */
const LEFT_STREAM = 'github-octo-org-octo-repo';
/** Webhooks under way at a time: senders wait for no answer before they send the next one, and promise no order. */
export const POSTED_AT_ONCE = 16;
/** Events that the limited stream keeps. */
export const KEPT_EVENTS = 50;
/** Of the metadata that limits it: the same in every run, so that a repeat is recognised. */
const LIMIT_ID = '5d0e2b7a-9c1f-4e3b-8a6d-7f2c4b1e9d05';

export interface StreamReport {
  readonly stream: string;
  /** Visible events before this run. */
  readonly before: number;
  /** Webhooks posted. */
  readonly sent: number;
  /** How many of them were refused, for whatever reason. */
  readonly refused: number;
  /** Events that this run has added: none for webhooks that an earlier one has sent. */
  readonly written: number;
  /** Everything sent came back, once, with the same type and bytes. */
  readonly isSame: boolean;
  /** What was done to the stream in the end, if anything, and whether by an earlier run: then nothing was sent. */
  readonly fate: StreamFate | null;
  readonly wasBefore: boolean;
  /** Visible events at the end. */
  readonly after: number;
}

export interface DemoReport {
  /** Whether the webhooks were signed, which takes a node that keeps secrets. */
  readonly isSigned: boolean;
  /** What a webhook with a wrong signature was answered; null where none are signed. */
  readonly forgedStatus: number | null;
  readonly streams: readonly StreamReport[];
  readonly isSame: boolean;
  readonly sendSeconds: number;
  readonly readSeconds: number;
}

interface DemoOptions {
  readonly nowMs: () => number;
  /**
   * Called when a webhook was posted to a stream, or found to be there from an earlier run, with the bytes of its body.
   */
  readonly onPosted: (stream: string, bytes: number) => void;
}

interface Players {
  readonly client: StreamClient;
  readonly connector: DemoConnector;
}

/**
 * Posts all through the connector, reads all back and compares, limits one stream and deletes two, and counts again.
 */
export async function runDemo(
  players: Players,
  streams: readonly DemoStream[],
  options: DemoOptions,
): Promise<DemoReport> {
  const { connector } = players;
  const reports: StreamReport[] = [];
  const spent = { sendMs: 0, readMs: 0 };
  await connector.start();
  try {
    const forgedStatus =
      connector.secret === null ? null : await connector.post(streams[0]!.deliveries[0]!, `not ${connector.secret}`);
    const plays = [];
    for (const each of streams) plays.push(await begin(players, each, options));
    const startMs = options.nowMs();
    await post(
      connector,
      plays.filter(({ earlier }) => earlier === null),
      options,
    );
    spent.sendMs = options.nowMs() - startMs;
    for (const play of plays) reports.push(await end(players, play, options, spent));
    return {
      isSigned: connector.secret !== null,
      forgedStatus,
      streams: reports,
      isSame: reports.every((report) => report.isSame) && (forgedStatus ?? 401) === 401,
      sendSeconds: spent.sendMs / 1000,
      readSeconds: spent.readMs / 1000,
    };
  } finally {
    await connector.stop();
  }
}

/** What the demo deleted behind its scavenge, or an earlier run did. */
export interface LeftReport {
  readonly stream: string;
  /** Events that it had, 0 where an earlier run deleted it. */
  readonly events: number;
  readonly wasBefore: boolean;
}

/** Deletes one stream more, or finds that an earlier run has. */
export async function leaveOne(client: StreamClient, reports: readonly StreamReport[]): Promise<LeftReport> {
  const { after = 0, fate = null } = reports.find(({ stream }) => stream === LEFT_STREAM) ?? {};
  if (fate === null) await client.delete(LEFT_STREAM, 'soft');
  return { stream: LEFT_STREAM, events: after, wasBefore: fate !== null };
}

/** A stream while it is played. */
interface Play extends DemoStream {
  /** What an earlier run has done to it: nothing is sent then. */
  readonly earlier: StreamFate | null;
  readonly before: number;
  refused: number;
}

async function begin(
  { client }: Players,
  { stream, deliveries }: DemoStream,
  { onPosted }: DemoOptions,
): Promise<Play> {
  const earlier = await client.fateOf(stream);
  const before = await count(client, stream);
  if (earlier !== null) for (const { body } of deliveries) onPosted(stream, Buffer.byteLength(body));
  return { stream, deliveries, earlier, before, refused: 0 };
}

async function post(connector: DemoConnector, plays: readonly Play[], { onPosted }: DemoOptions): Promise<void> {
  const all = plays.flatMap((play) => play.deliveries.map((delivery) => ({ play, delivery })));
  await inParallel(all.length, POSTED_AT_ONCE, async (i) => {
    const { play, delivery } = all[i]!;
    if ((await connector.post(delivery)) !== 201) play.refused++;
    onPosted(play.stream, Buffer.byteLength(delivery.body));
  });
}

async function end(
  { client }: Players,
  { stream, deliveries, earlier, before, refused }: Play,
  { nowMs }: DemoOptions,
  spent: { readMs: number },
): Promise<StreamReport> {
  if (earlier !== null)
    return {
      stream,
      before,
      sent: 0,
      refused: 0,
      written: 0,
      isSame: true,
      fate: earlier,
      wasBefore: true,
      after: before,
    };
  const startMs = nowMs();
  const read = (await client.read(stream)) ?? [];
  spent.readMs += nowMs() - startMs;
  const fate = FATES[stream] ?? null;
  if (fate === 'limited') await client.limit(stream, LIMIT_ID, KEPT_EVENTS);
  else if (fate !== null) await client.delete(stream, fate);
  const after = fate === null ? read.length : await count(client, stream);
  return {
    stream,
    before,
    sent: deliveries.length,
    refused,
    written: read.length - before,
    isSame: refused === 0 && areSame(deliveries, read),
    fate,
    wasBefore: false,
    after,
  };
}

async function count(client: StreamClient, stream: string): Promise<number> {
  return (await client.read(stream))?.length ?? 0;
}

/** What is not of the demo may stand between its events. */
function areSame(sent: readonly DemoDelivery[], read: readonly ReadEvent[]): boolean {
  const byDelivery = Map.groupBy(read, ({ deliveryId }) => deliveryId);
  return sent.every(({ deliveryId, eventType, body }) => {
    const [event, second] = byDelivery.get(deliveryId) ?? [];
    return second === undefined && event?.eventType === eventType && event.data === body;
  });
}

/** Its data are as they were received, to the byte. */
interface ReadEvent extends Pick<LineDocument, 'eventNumber' | 'eventId' | 'eventType' | 'data'> {
  /** Of the webhook that it came with. */
  readonly deliveryId: string | null;
}

/** What an earlier run has done to a stream: deleted it, or limited how many of its events stay. */
type StreamFate = 'soft' | 'hard' | 'limited';

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
    return text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => {
        const { eventNumber, eventId, eventType, data, metaData } = JSON.parse(line) as LineDocument;
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
    const response = await this.#call(
      'POST',
      stream,
      '/metadata',
      { 'content-type': 'application/vnd.eventstore.events+json' },
      JSON.stringify([{ eventId, eventType: '$metadata', data: { $maxCount: maxCount } }]),
    );
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

  #call(
    method: string,
    stream: string,
    rest: string,
    headers: Record<string, string>,
    body?: string,
  ): Promise<Response> {
    return this.#node.call(method, `/streams/${encodeURIComponent(stream)}${rest}`, {
      headers,
      ...(body !== undefined && { body }),
    });
  }
}
