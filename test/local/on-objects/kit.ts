import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, vi } from 'vitest';
import { s3ForTests, type S3ForTests } from '../../support/s3/s3-for-tests.ts';
import { startedNode } from '../spawn.ts';

export type Node = Awaited<ReturnType<typeof startedNode>>;

const EVENTS = 'application/vnd.eventstore.events+json';
/** Asked again after so long, so often, for what a tick does. */
const LOOK_MS = 100;
const LOOKS_MAX = 6_000;

/** A bucket for the tests of a file, a prefix in it for each, and the nodes on it. */
export function onBucket() {
  let s3: S3ForTests;
  let places = 0;
  let nodes: Node[] = [];
  const on = {
    /** `s3://bucket/prefix` of this test. */
    storage: '',
    /** Another prefix of the bucket, without anything. */
    beside: '',
    folder: '',
    start: async (...words: string[]): Promise<Node> => {
      const node = await startedNode(['--storage', on.storage, '--chunk-size', '128KiB', ...words]);
      nodes.push(node);
      return node;
    },
  };
  beforeAll(async () => {
    s3 = await s3ForTests();
    vi.stubEnv('AWS_ENDPOINT_URL_S3', s3.endpoint);
    vi.stubEnv('AWS_REGION', s3.region);
  });
  beforeEach(() => {
    on.storage = `s3://${s3.bucket}/store-${++places}`;
    on.beside = `s3://${s3.bucket}/beside-${places}`;
    on.folder = mkdtempSync(path.join(tmpdir(), 'skua-on-objects-'));
  });
  afterEach(async () => {
    await Promise.all(nodes.map((node) => node.stop()));
    nodes = [];
    rmSync(on.folder, { recursive: true, force: true });
  });
  afterAll(async () => {
    vi.unstubAllEnvs();
    await s3.close();
  });
  return on;
}

export function streamUrl(node: Node, stream: string, rest = ''): string {
  return `${node.url}/streams/${encodeURIComponent(stream)}${rest}`;
}

function idOf(key: number, number: number): string {
  return `00000000-0000-4000-8${String(key).padStart(3, '0')}-${String(number).padStart(12, '0')}`;
}

/** Appends `count` events of 2 kB. */
export async function fill(node: Node, stream: string, key: number, count: number, from = 0): Promise<void> {
  for (let first = from; first < from + count; first += 25) {
    const batch = Array.from({ length: Math.min(25, from + count - first) }, (_, i) => ({
      eventId: idOf(key, first + i),
      eventType: 'parcel',
      data: { number: first + i, text: 'x'.repeat(2_000) },
    }));
    expect(
      (
        await fetch(streamUrl(node, stream), {
          method: 'POST',
          headers: { 'content-type': EVENTS },
          body: JSON.stringify(batch),
        })
      ).status,
    ).toBe(201);
  }
}

export async function setMaxCount(node: Node, stream: string, count: number): Promise<void> {
  const metadata = [{ eventId: idOf(999, count), eventType: '$metadata', data: { $maxCount: count } }];
  expect(
    (
      await fetch(streamUrl(node, stream, '/metadata'), {
        method: 'POST',
        headers: { 'content-type': EVENTS },
        body: JSON.stringify(metadata),
      })
    ).status,
  ).toBe(201);
}

/** The numbers that the events of a stream carry, the oldest first. */
export async function numbersIn(node: Node, stream: string): Promise<number[]> {
  const reply = await fetch(streamUrl(node, stream, '/0/forward/4096?embed=body'), {
    headers: { accept: 'application/vnd.eventstore.atom+json' },
  });
  expect(reply.status).toBe(200);
  const { entries } = (await reply.json()) as { entries: { data: string }[] };
  return entries.map(({ data }) => (JSON.parse(data) as { number: number }).number).reverse();
}

export async function ask(
  node: Node,
  method: string,
  rest: string,
): Promise<{ readonly status: number; readonly body: any }> {
  const reply = await fetch(`${node.url}${rest}`, { method, headers: { accept: 'application/json' } });
  const text = await reply.text();
  return { status: reply.status, body: text === '' ? null : JSON.parse(text) };
}

/** The answer, once it is as wanted. */
export async function until<T>(look: () => Promise<T>, isWanted: (found: T) => boolean): Promise<T> {
  for (let looks = 0; ; looks++) {
    const found = await look();
    if (isWanted(found)) return found;
    if (looks === LOOKS_MAX) throw new Error(`It does not come: ${JSON.stringify(found)}`);
    await new Promise((resolve) => {
      setTimeout(resolve, LOOK_MS);
    });
  }
}
