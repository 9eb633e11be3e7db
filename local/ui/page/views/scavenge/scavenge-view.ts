import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { get } from '../../api/page-client.ts';
import { usePolled } from '../../api/polled.ts';
import type { Polled } from '../../api/polled.ts';
import { followDryRun } from './dry-run-report.ts';
import type { CurrentDocument, LastDocument, ProgressDocument } from '../../../../../handlers/documents/scavenging.ts';

/** The scavenge that runs on this node, whichever user started it. */

const EVERY_MS = 2_000;
const CURRENT_PATH = '/admin/scavenge/current';
export const LAST_PATH = '/admin/scavenge/last';

/** The run of which it is known whether it only counts. */
const kind = signal<{ readonly scavengeId: string; readonly isDry: boolean } | null>(null);

export interface Run {
  readonly current: Polled<CurrentDocument>;
  readonly scavengeId: string | null;
  /** The run changes nothing; null while that is unknown. */
  readonly isDry: boolean | null;
  readonly progress: ProgressDocument | null;
}

export function useRun(): Run {
  const current = usePolled<CurrentDocument>(CURRENT_PATH, EVERY_MS);
  const scavengeId = current.data.value?.scavengeId || null;
  const told = usePolled<ProgressDocument>(scavengeId === null ? null : '/admin/scavenge/progress', EVERY_MS).data
    .value;
  // What is kept of an earlier run says nothing of this one.
  const progress = told?.scavengeId === scavengeId ? told : null;
  const { value: known } = kind;
  const isDry = scavengeId === null || known?.scavengeId !== scavengeId ? null : known.isDry;
  useEffect(() => {
    if (scavengeId === null || kind.peek()?.scavengeId === scavengeId) return;
    // A dry run is never the last scavenge.
    get<LastDocument>(LAST_PATH).then(
      (last) => {
        kind.value = { scavengeId, isDry: last.scavengeId !== scavengeId };
        // Also a dry run that another user has started: its report serves all.
        if (last.scavengeId !== scavengeId) followDryRun(scavengeId);
      },
      () => {
        // It is told apart when the view is opened again; until then it is shown as a run.
      },
    );
  }, [scavengeId]);
  return { current, scavengeId, isDry, progress };
}

/**
 * How much of the log a run has gone through in its phase, as the number of files that lie behind it; null where it
 * goes through no files.
 */
export function filesBehind(
  { phase, chunksDone, chunksTotal, bytesDone, bytesTotal, phaseShare }: ProgressDocument,
  isDry: boolean | null,
  complete: number,
): number | null {
  if (isDry === true) {
    // It reads the log twice: to learn, and to count.
    const half = bytesTotal / 2;
    return half <= 0 ? null : Math.floor(((bytesDone >= half ? bytesDone - half : bytesDone) / half) * complete);
  }
  if (phase === 'Accumulation') return Math.floor((phaseShare ?? 0) * complete);
  // A run that goes on where another stopped has fewer before it than there are.
  if (phase === 'Chunk execution') return Math.max(0, complete - chunksTotal + chunksDone);
  return null;
}
