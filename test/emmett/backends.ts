import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fetchBy } from '../support/lambda/call-function.ts';
import { openStore } from '../../local/embedded/index.ts';
import type { EventSource, HttpSource, OfficialClient } from '../../local/emmett/index.ts';
import { startedNode } from '../local/spawn.ts';

/** Where events may lie, ready to be used. */
export interface Backend {
  readonly source: EventSource;
  /** Deletes a stream, for ever or so that it can be written again. */
  deleteStream(stream: string, isForEver: boolean): Promise<void>;
  /** Replaces the metadata of a stream. */
  setMetadata(stream: string, metadata: Readonly<Record<string, unknown>>): Promise<void>;
  /** Appends one event that holds bytes. */
  appendBytes(stream: string, bytes: Uint8Array<ArrayBuffer>): Promise<void>;
  close(): Promise<void>;
}

const PASSWORD = 'first';

/** Sends a request, as the client does it: by the text of an address. */
export type Send = (url: string, init: RequestInit) => Promise<Response>;

export function asFetch(send: Send): NonNullable<HttpSource['fetch']> {
  return (url, init = {}) => send(String(url), init);
}

/** What is not Emmett's to do, by HTTP. */
function byHttp(url: string, send: Send): Omit<Backend, 'source' | 'close'> {
  const ask = async (
    method: string,
    path: string,
    headers: Record<string, string> = {},
    body?: string | Uint8Array<ArrayBuffer>,
  ): Promise<void> => {
    const reply = await send(`${url}/streams/${path}`, {
      method,
      headers: { authorization: `Basic ${btoa(`admin:${PASSWORD}`)}`, ...headers },
      ...(body !== undefined && { body }),
    });
    if (!reply.ok) throw new Error(`${method} ${path}: ${reply.status} ${await reply.text()}`);
  };
  return {
    deleteStream: (stream, isForEver) => ask('DELETE', stream, { 'es-harddelete': String(isForEver) }),
    setMetadata: (stream, metadata) =>
      ask(
        'POST',
        `${stream}/metadata`,
        { 'content-type': 'application/json', 'es-eventid': crypto.randomUUID() },
        JSON.stringify(metadata),
      ),
    appendBytes: (stream, bytes) =>
      ask(
        'POST',
        stream,
        { 'content-type': 'application/octet-stream', 'es-eventtype': 'bytes', 'es-eventid': crypto.randomUUID() },
        bytes,
      ),
  };
}

/** A store of this process, in memory or in a directory. */
export async function embedded(isInMemory = true, open = openStore): Promise<Backend> {
  const folder = isInMemory ? null : await mkdtemp(join(tmpdir(), 'skua-emmett-'));
  const store = await open(folder === null ? { memory: true } : { directory: folder });
  return {
    source: store,
    deleteStream: async (stream, hard) => {
      await store.delete(stream, { hard });
    },
    setMetadata: async (stream, { $tb: truncateBefore, $maxCount: maxCount }) => {
      await store.setMetadata(stream, {
        ...(truncateBefore !== undefined && { truncateBefore: Number(truncateBefore) }),
        ...(maxCount !== undefined && { maxCount: Number(maxCount) }),
      });
    },
    appendBytes: async (stream, data) => {
      await store.append(stream, { type: 'bytes', data });
    },
    close: async () => {
      await store.close();
      if (folder !== null) await rm(folder, { recursive: true, force: true });
    },
  };
}

/** A node by gRPC; the client comes from a package that the caller has loaded. */
export async function nodeByGrpc(
  connect: (connectionString: string) => OfficialClient & { dispose(): Promise<unknown> },
): Promise<Backend> {
  const node = await startedNode(['--mem-db']);
  const client = connect(
    `esdb://127.0.0.1:${new URL(node.url).port}?tls=false&defaultDeadline=600000&keepAliveTimeout=600000`,
  );
  return {
    source: client,
    ...byHttp(node.url, fetch),
    close: async () => {
      await client.dispose();
      await node.stop();
    },
  };
}

/** A node with users by HTTP. */
export async function nodeByHttp(): Promise<Backend> {
  process.env['SERVER_DEFAULT_ADMIN_PASSWORD'] = PASSWORD;
  const node = await startedNode(['--mem-db', '--disable-tls']);
  const { host } = new URL(node.url);
  return {
    source: { url: `http://admin:${PASSWORD}@${host}/` },
    ...byHttp(node.url, fetch),
    close: async () => {
      await node.stop();
    },
  };
}

/**
 * Functions over a directory of objects: their own handler, with the events that the platform makes of requests. A
 * process has one of them.
 */
export async function functions(): Promise<Backend & { readonly folder: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'skua-emmett-functions-'));
  Object.assign(process.env, {
    SERVER_STORAGE: folder,
    SERVER_DEFAULT_ADMIN_PASSWORD: PASSWORD,
    SERVER_DEFAULT_OPS_PASSWORD: 'second',
    SERVER_LOG_LEVEL: 'Error',
  });
  const { handler } = await import('../../infra/aws/functions/streams.ts');
  const url = 'https://store.example.com';
  const send: Send = fetchBy(handler, url);
  return {
    source: { url, credentials: { username: 'admin', password: PASSWORD }, fetch: asFetch(send) },
    folder,
    ...byHttp(url, send),
    close: () => rm(folder, { recursive: true, force: true }),
  };
}
