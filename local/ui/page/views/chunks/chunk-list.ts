import { signal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { usePolled } from '../../api/polled.ts';
import type { Polled } from '../../api/polled.ts';
import type { ChunkMapView, ChunkView } from '../../../../../core/log/api.ts';

/** The chunk files of the node, as `GET /admin/chunks` tells them. */
export type ChunkList = ChunkMapView & { readonly chunks: readonly ChunkView[] };

const PATH = '/admin/chunks';
const EVERY_MS = 2_000;

/** Kept while other views are looked at: only what has changed since is asked for. */
const known = signal<ChunkList | null>(null);

/**
 * Every chunk file in the order of the log, and the poller for what went wrong. Ten thousand chunks are sent once, and
 * again only when the set of files has changed.
 */
export function useChunks(): { readonly list: ChunkList | null; readonly polled: Polled<unknown> } {
  const last = known.value;
  const polled = usePolled<ChunkMapView>(
    last === null ? PATH : `${PATH}?since=${encodeURIComponent(last.version)}`,
    EVERY_MS,
  );
  const answer = polled.data.value;
  useEffect(() => {
    const { value } = known;
    if (answer === null || (answer.chunks === null && answer.version !== value?.version)) return;
    // An answer to an older question may stand there still when the view is opened again.
    if (answer.chunks !== null && answer.version !== value?.version) known.value = { ...answer, chunks: answer.chunks };
  }, [answer]);
  const logEnd =
    answer === null || answer.version !== last?.version ? (last?.logEnd ?? 0) : Math.max(answer.logEnd, last.logEnd);
  const list = useMemo(() => (last === null ? null : grown(last, logEnd)), [last, logEnd]);
  return { list, polled };
}

/** The list with the ongoing chunk filled as far as the log goes. */
function grown(list: ChunkList, logEnd: number): ChunkList {
  const last = list.chunks.at(-1);
  if (last === undefined || !last.isOngoing || logEnd <= list.logEnd) return list;
  return {
    ...list,
    logEnd,
    chunks: [
      ...list.chunks.slice(0, -1),
      { ...last, bytes: last.bytes + logEnd - list.logEnd, dataBytes: logEnd - last.startPosition },
    ],
  };
}
