import { getText } from '../../api/page-client.ts';
import { ApiError } from '../../api/problem-text.ts';
import { addressOf } from './name-search.ts';
import { pageLines } from './previews.ts';
import type { LineDocument } from '../../../../../handlers/documents/streams.ts';

/** One event with its data. */
export interface ShownEvent {
  readonly line: LineDocument;
  /** The number of its place in the stream that was read; of a link, the link's. */
  readonly number: number;
  /** It was reached by a link, and this is what the link leads to. */
  readonly isResolved: boolean;
  /** Of an event that is a link itself, what it leads to. */
  readonly link: LinkTarget | null;
}

export interface LinkTarget {
  readonly stream: string;
  readonly number: number;
}

/** Rejects with `event_not_found` where there is none of that number. */
export async function readEvent(
  stream: string,
  number: number,
  resolvesLinks: boolean,
  signal: AbortSignal,
): Promise<ShownEvent> {
  for await (const [line] of pageLines(
    { base: addressOf(stream), query: {}, resolvesLinks },
    String(number),
    'forward',
    1,
    signal,
  )) {
    if (line === undefined || line.positionEventNumber !== number) break;
    const isResolved = line.streamId !== line.positionStreamId || line.eventNumber !== line.positionEventNumber;
    return {
      line,
      number,
      isResolved,
      link: line.eventType === LINK_TYPE ? linkIn(line.data ?? (await ownData(stream, number, signal))) : null,
    };
  }
  throw new ApiError(
    'event_not_found',
    `Stream '${stream}' has no event ${number}: it is gone, or it has not been written yet.`,
    { status: 404 },
  );
}

const LINK_TYPE = '$>';

/** The data of the event itself: of most links they are no JSON, so that pages don't hold them. */
function ownData(stream: string, number: number, signal: AbortSignal): Promise<string> {
  return getText(addressOf(stream, number), {
    signal,
    headers: { accept: 'application/octet-stream', 'es-resolvelinktos': 'false' },
  });
}

/** What a link says: `number@stream`. */
function linkIn(text: string): LinkTarget | null {
  const found = /^(\d{1,15})@(.+)$/s.exec(text);
  return found === null ? null : { stream: found[2]!, number: Number(found[1]) };
}

/** `123/120` as the pages of `$all` name it: 16 hexadecimal digits for each half. */
export function tokenOf(position: string): string {
  return position
    .split('/')
    .map((half) => BigInt(half).toString(16).toUpperCase().padStart(16, '0'))
    .join('');
}
