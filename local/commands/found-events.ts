import { CommandError, UsageError } from '../../infra/runtime/failure.ts';
import { EXIT } from '../../infra/runtime/io.ts';
import { expectStatus } from '../cli/node-client.ts';
import type { NodeClient } from '../cli/node-client.ts';

/** What commands ask a node for when they look for events, and its answers line by line. */

export interface Conditions {
  readonly category: string | null;
  readonly type: readonly string[];
  readonly correlation: string | null;
  readonly tag: readonly string[];
}

/** As the node takes them in the query of an address. */
export function queryOf({ category, type, correlation, tag }: Conditions): URLSearchParams {
  const query = new URLSearchParams();
  if (category !== null) query.append('category', category);
  for (const each of type) query.append('eventType', each);
  if (correlation !== null) query.append('correlation', correlation);
  for (const each of tag) query.append('tag', each);
  return query;
}

/** The path of a stream, or of all of them. */
export function pathOf(stream: string | null): string {
  return `/streams/${encodeURIComponent(stream ?? '$all')}`;
}

/** A position of `$all` as pages that go backward name it: they begin with the event before. */
export function tokenOf(place: string): string {
  const parts = /^(\d{1,15})\/(\d{1,15})$/.exec(place);
  if (parts === null)
    throw new UsageError(`--from must be a position of $all such as 2191/2191, as each line shows it, not '${place}'.`);
  return [parts[1], parts[2]].map((half) => Number(half).toString(16).toUpperCase().padStart(16, '0')).join('');
}

/** Where a backward page leads on, by its header `Link`; null at the end. The address is the node's own, not ours. */
export function olderOf(response: Response): string | null {
  const link = response.headers.get('link') ?? '';
  if (!link.endsWith('>; rel="next"')) return null;
  return new URL(link.slice(1, link.indexOf('>'))).pathname.split('/').at(-3)!;
}

/** A reply with lines, or what the node said in its place. */
export async function linesReply(
  node: NodeClient,
  path: string,
  accept: string,
  signal: AbortSignal,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  const response = await node.call('GET', path, { headers: { accept, ...headers }, signal });
  if (response.status !== 200) await expectStatus(response, [200], 'reading events');
  return response;
}

/** Characters of one line: an event of 16 MiB whose every byte is escaped. */
const LINE_CHARACTERS_MAX = 134_217_728;

/** The lines of a reply as they come. Throws where the connection cut one off. */
export async function* linesIn(response: Response): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let parts: string[] = [];
  let length = 0;
  for await (const bytes of response.body ?? []) {
    const pieces = decoder.decode(bytes as Uint8Array, { stream: true }).split('\n');
    for (const [i, piece] of pieces.entries()) {
      parts.push(piece);
      length += piece.length;
      if (length > LINE_CHARACTERS_MAX)
        throw new CommandError('unexpected_reply', 'The node sent a line that is longer than any event.', EXIT.failed);
      if (i === pieces.length - 1) continue;
      yield parts.join('');
      parts = [];
      length = 0;
    }
  }
  if (length > 0)
    throw new CommandError('unreachable', 'The connection to the node broke off within a line.', EXIT.unreachable);
}
