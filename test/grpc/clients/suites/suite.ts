import type { Client, ClientNode, Library } from '../nodes.ts';

/** What the tests of one client, at a node with or without TLS, are given. */
export interface Suite {
  readonly lib: Library;
  /** The newer generation of the client. */
  readonly isNew: boolean;
  readonly isSecure: boolean;
  node(): ClientNode;
  /** One for all tests. */
  client(): Client;
  /** A stream that no other test has. */
  stream(): string;
}

/** `{n: 0}` and so on, of type `made`. */
export function numbered(lib: Library, count: number, from = 0, type = 'made') {
  return Array.from({ length: count }, (_, i) => lib.jsonEvent({ type, data: { n: from + i } }));
}

/** The first items; leaving the loop ends the subscription. */
export async function take<T>(items: AsyncIterable<T>, count: number): Promise<T[]> {
  const out: T[] = [];
  if (count > 0) {
    for await (const item of items) {
      out.push(item);
      if (out.length === count) break;
    }
  }
  return out;
}

/** Resolves with what an emitter says next under this name; rejects with its error. */
export function told<T = unknown>(emitter: { once(name: any, listener: any): unknown }, name: string): Promise<T> {
  return new Promise((resolve, reject) => {
    emitter.once(name, resolve);
    emitter.once('error', reject);
  });
}
