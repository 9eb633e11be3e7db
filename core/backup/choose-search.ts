import { chunkEnd, chunkStart, type Kept, type Stretch, stretches } from './choose-places.ts';
import { RecordWalk } from './choose-walk.ts';
import type { ManifestChunk } from './manifest.ts';
import type { Repository } from './repository-api.ts';

/** The places nearest to a position, or to a time, where the log can end; null where there is none. */
export interface Nearest {
  readonly below: number | null;
  readonly above: number | null;
}

export const NOTHING_NEAR: Nearest = { below: null, above: null };

/** The nearer ones of two. */
export function nearer(a: Nearest, b: Nearest): Nearest {
  const below = Math.max(a.below ?? 0, b.below ?? 0);
  const above = Math.min(a.above ?? Number.MAX_SAFE_INTEGER, b.above ?? Number.MAX_SAFE_INTEGER);
  return { below: below === 0 ? null : below, above: above === Number.MAX_SAFE_INTEGER ? null : above };
}

/** The ends of a chunk of which nothing in between can be restored. */
export function endsOf(kept: Kept, chunk: ManifestChunk): Nearest {
  return { below: chunkStart(kept.manifest, chunk) || null, above: chunkEnd(kept.manifest, chunk) };
}

/** Looks around a position inside a stretch. `isEnd` when the log can end exactly there. */
export async function lookAround({ from, to, content }: Stretch, position: number): Promise<Nearest & { readonly isEnd: boolean }> {
  const walk = new RecordWalk(from);
  let below = from;
  let above: number | null = null;
  let isEnd = false;
  const look = ({ end }: RecordWalk): boolean => {
    if (end < position) below = end;
    else if (end === position) isEnd = true;
    else above = end;
    return above === null;
  };
  for await (const bytes of content()) if (!walk.push(bytes, look)) break;
  if (above === null && to > position) above = to;
  return { isEnd, below: below === 0 ? null : below, above };
}

/** What a backup says of a time. */
export type FoundTime =
  /** Everything in it is of that time or before. */
  | { readonly kind: 'all' }
  /** The place behind the last write before the first later record. */
  | { readonly kind: 'at'; readonly position: number }
  /** Already the first write has a later record; from `earliestMs` on it has none. */
  | { readonly kind: 'before'; readonly earliestMs: number }
  /** The place lies in a chunk that was scavenged. */
  | { readonly kind: 'scavenged'; readonly chunk: ManifestChunk };

/**
 * Finds the end of the last write before the first record later than `timeMs`, first in the order of the log, whatever the
 * clock did meanwhile. Chunks without a later record are passed over unread.
 */
export async function findTime(repository: Repository, kept: Kept, timeMs: number): Promise<FoundTime> {
  for (const { chunk, stretch } of stretches(repository, kept)) {
    if (chunk !== null && (chunk.toMs === null || chunk.toMs <= timeMs)) continue;
    if (chunk?.isScavenged === true) {
      if ((chunk.fromMs ?? timeMs) <= timeMs) return { kind: 'scavenged', chunk };
      return stretch.from === 0 ? { kind: 'before', earliestMs: chunk.fromMs! } : { kind: 'at', position: stretch.from };
    }
    const found = await firstLater(stretch, timeMs);
    if (found !== null) return found;
  }
  return { kind: 'all' };
}

async function firstLater({ from, content }: Stretch, timeMs: number): Promise<FoundTime | null> {
  const walk = new RecordWalk(from);
  let position = -1;
  let writeMs = -Infinity;
  const look = (): boolean => {
    writeMs = Math.max(writeMs, walk.timeMs);
    if (position < 0 && walk.timeMs > timeMs) position = walk.before;
    // The first write of all is read to its end, since its latest record says from when on something can be restored.
    if (position > 0 || (position === 0 && walk.endsWrite)) return false;
    if (walk.endsWrite) writeMs = -Infinity;
    return true;
  };
  for await (const bytes of content()) if (!walk.push(bytes, look)) break;
  if (position < 0) return null;
  return position === 0 ? { kind: 'before', earliestMs: writeMs } : { kind: 'at', position };
}
