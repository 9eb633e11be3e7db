import { signal } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import { post } from '../../api/page-client.ts';
import { usePolled } from '../../api/polled.ts';
import type { Polled } from '../../api/polled.ts';
import { errorOf } from '../../api/problem-text.ts';
import { announce } from '../../lib/announce.ts';
import { keep, kept } from '../../lib/kept.ts';
import { toast } from '../../parts/toast.tsx';
import type { DryRunDocument, StartedDocument } from '../../../../../handlers/documents/scavenging.ts';

/**
 * Dry runs: what a scavenge would win, counted without changing anything. The last one that is known is shown by the
 * map and by the view of scavenges.
 */

type Answer = DryRunDocument | StartedDocument;

const KEPT = 'dry-run';
const EVERY_MS = 2_000;
/** A report that is there doesn't change. */
const NEVER_MS = 86_400_000;

const followed = signal<string | null>(kept(KEPT));
const known = signal<DryRunDocument | null>(null);

/** Shows the report of this dry run once it is there, whichever user started it. */
export function followDryRun(scavengeId: string | null): void {
  followed.value = scavengeId;
  keep(KEPT, scavengeId);
}

/** What starts a dry run, and whether it is being started. */
export function useStart(current: Pick<Polled<unknown>, 'refresh'>): {
  readonly isStarting: boolean;
  start(): Promise<void>;
} {
  const [isStarting, setStarting] = useState(false);
  const start = async () => {
    setStarting(true);
    try {
      const { scavengeId } = await post<StartedDocument>('/admin/scavenge', undefined, { query: { dryRun: true } });
      followDryRun(scavengeId);
      await current.refresh();
    } catch (thrown) {
      const error = errorOf(thrown);
      toast(`${error.message}${error.hint === null ? '' : ` ${error.hint}`}`, 'bad');
    } finally {
      setStarting(false);
    }
  };
  return { isStarting, start };
}

export interface DryRun {
  /** The last report that is known. */
  readonly report: DryRunDocument | null;
  /** One is being made. */
  readonly isUnderWay: boolean;
}

export function useDryRun(): DryRun {
  const scavengeId = followed.value;
  const report = known.value;
  const isKnown = scavengeId !== null && report?.scavengeId === scavengeId;
  const polled = usePolled<Answer>(
    scavengeId === null || isKnown ? null : pathOf(scavengeId),
    isKnown ? NEVER_MS : EVERY_MS,
  );
  const answer = polled.data.value;
  const status = polled.error.value?.status;
  useEffect(() => {
    if (answer === null || !('chunks' in answer) || answer.scavengeId !== scavengeId) return;
    known.value = answer;
    announce(`Dry run complete: ${answer.totals.chunksExecuted} of ${answer.totals.chunks} chunks would be rewritten`);
  }, [answer, scavengeId]);
  useEffect(() => {
    // It was stopped, the node was started anew, or eight others came after it: what an older one has counted stays.
    if (status === 404) followDryRun(known.value?.scavengeId ?? null);
  }, [status, scavengeId]);
  return { report, isUnderWay: scavengeId !== null && !isKnown && status !== 404 };
}

function pathOf(scavengeId: string): string {
  return `/admin/scavenge/dry-run/${encodeURIComponent(scavengeId)}`;
}
