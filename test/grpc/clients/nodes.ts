import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type * as kurrent from '@kurrent/kurrentdb-client';
import { startedNode } from '../../local/spawn.ts';
import type { Started } from '../../local/spawn.ts';
import { issueNode, issueRoot } from '../../support/certificates.ts';

/**
 * What both generations of the official client have in common, in the words of the newer one. A process may load one of
 * them only: what is generated of their .proto files claims the same global names.
 */
export type Library = typeof kurrent;
export type Client = kurrent.KurrentDBClient;

/** Of a node that is told nothing of it. */
export const APPEND_BYTES_MAX = 1_048_576;

/** A node with or without TLS and users, and clients of it. */
export class ClientNode {
  readonly isSecure: boolean;
  readonly started: Started;
  readonly #folder: string;
  readonly #clients: Client[] = [];

  private constructor(isSecure: boolean, started: Started, folder: string) {
    this.isSecure = isSecure;
    this.started = started;
    this.#folder = folder;
  }

  static async start(isSecure: boolean, more: readonly string[] = []): Promise<ClientNode> {
    const folder = mkdtempSync(join(tmpdir(), 'skua-clients-'));
    if (!isSecure) return new ClientNode(false, await startedNode(['--mem-db', ...more]), folder);
    const root = await issueRoot();
    const { cert, key } = await issueNode(root, 'localhost', { ips: ['127.0.0.1'], dns: ['localhost'] });
    mkdirSync(join(folder, 'roots'));
    for (const [name, text] of Object.entries({ 'node.crt': cert, 'node.key': key, 'roots/root.crt': root.cert }))
      writeFileSync(join(folder, name), text);
    const file = (name: string): string => join(folder, name);
    return new ClientNode(
      true,
      await startedNode([
        '--mem-db',
        '--certificate-file',
        file('node.crt'),
        '--certificate-private-key-file',
        file('node.key'),
        '--trusted-root-certificates-path',
        file('roots'),
        ...more,
      ]),
      folder,
    );
  }

  get port(): string {
    return new URL(this.started.url).port;
  }

  /** As users write it. Credentials go over TLS only. */
  connectionString({
    credentials = 'admin:changeit@',
    options = '',
  }: { readonly credentials?: string; readonly options?: string } = {}): string {
    // Clients wait however busy the machine is.
    const patience = '&defaultDeadline=600000&keepAliveTimeout=600000';
    return this.isSecure
      ? `esdb://${credentials}localhost:${this.port}?tlsCaFile=${encodeURIComponent(join(this.#folder, 'roots/root.crt'))}${patience}${options}`
      : `esdb://127.0.0.1:${this.port}?tls=false${patience}${options}`;
  }

  client(lib: Library, options: Parameters<ClientNode['connectionString']>[0] = {}): Client {
    const client = lib.KurrentDBClient.connectionString(
      this.connectionString(options).replace('esdb:', 'PINNED_BY_CORRELATION' in lib ? 'kurrentdb:' : 'esdb:'),
    );
    this.#clients.push(client);
    return client;
  }

  async stop(): Promise<void> {
    // Not waited for: of a subscription that was left while it had more to give, the older client waits for an end that
    // it does not read.
    for (const client of this.#clients) void client.dispose();
    await this.started.stop();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** What either client takes for the state that a stream must be in. */
export function expecting(state: kurrent.AppendStreamState): {
  streamState: kurrent.AppendStreamState;
  expectedRevision: never;
} {
  return { streamState: state, expectedRevision: state as never };
}

export async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const out: T[] = [];
  for await (const item of items) out.push(item);
  return out;
}

/** The error with which this fails. */
export async function failure(what: Promise<unknown> | AsyncIterable<unknown>): Promise<Error & Record<string, any>> {
  try {
    await (Symbol.asyncIterator in what ? all(what) : what);
  } catch (error) {
    return error as Error;
  }
  throw new Error('it did not fail');
}
