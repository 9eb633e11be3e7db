import { ApiError } from '../../api/problem.ts';
import { addressOf } from './names.ts';
import { pageLines } from './previews.ts';
import type { Line } from './previews.ts';

/** One event with its data. */
export interface ShownEvent {
  readonly line: Line;
  /** The number of its place in the stream that was read; of a link, the link's. */
  readonly number: number;
  /** It was reached by a link, and this is what the link leads to. */
  readonly isResolved: boolean;
}

/** Rejects with `event_not_found` where there is none of that number. */
export async function readEvent(stream: string, number: number, resolvesLinks: boolean, signal: AbortSignal): Promise<ShownEvent> {
  for await (const [line] of pageLines({ base: addressOf(stream), query: {}, resolvesLinks }, String(number), 'forward', 1, signal)) {
    if (line === undefined || line.positionEventNumber !== number) break;
    return { line, number, isResolved: line.streamId !== line.positionStreamId || line.eventNumber !== line.positionEventNumber };
  }
  throw new ApiError('event_not_found', `Stream '${stream}' has no event ${number}: it is gone, or it has not been written yet.`, { status: 404 });
}

/** What a link says: `number@stream`. */
export function linkIn(text: string): { readonly stream: string; readonly number: number } | null {
  const found = /^(\d{1,15})@(.+)$/s.exec(text);
  return found === null ? null : { stream: found[2]!, number: Number(found[1]) };
}

/** `123/120` as the pages of `$all` name it: 16 hexadecimal digits for each half. */
export function tokenOf(position: string): string {
  return position.split('/').map((half) => BigInt(half).toString(16).toUpperCase().padStart(16, '0')).join('');
}
