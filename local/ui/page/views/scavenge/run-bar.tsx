import { del } from '../../api/page-client.ts';
import { errorOf } from '../../api/problem-text.ts';
import { bytesText, countText, numberText } from '../../lib/format.ts';
import { Button } from '../../parts/button.tsx';
import { confirm } from '../../parts/confirm.tsx';
import { Dotted } from '../../parts/dotted.tsx';
import { Progress } from '../../parts/progress.tsx';
import { Time } from '../../parts/time.tsx';
import { toast } from '../../parts/toast.tsx';
import type { Run } from './scavenge-view.ts';

/** What each phase does, in the order in which a scavenge goes through them. */
export const PHASES = [
  { name: 'Accumulation', about: 'Reads new log and notes which streams have retention rules or are deleted.' },
  { name: 'Calculation', about: 'Works out which events of these streams to remove.' },
  { name: 'Chunk execution', about: 'Rewrites chunks of sufficient weight without the removed records.' },
  { name: 'Chunk merging', about: 'Merges small adjacent chunks into one file.' },
  { name: 'Index execution', about: 'Removes index entries of removed records.' },
  { name: 'Cleaning', about: 'Drops state that the next scavenge does not need.' },
] as const;

/** How far the phase is, from 0 to 1; null while it is unknown. */
export function shareOf({ progress }: Run): number | null {
  if (progress === null || progress.phaseShare === undefined) return null;
  return progress.bytesTotal === 0 && progress.chunksTotal === 0 && progress.phaseShare === 0
    ? null
    : progress.phaseShare;
}

export function phaseText({ progress, isDry }: Run): string {
  if (isDry === true) return 'Dry run: counts what could be removed';
  return progress === null || progress.phase === 'Starting' ? 'Starting' : progress.phase;
}

/** How far the run is that goes on now. */
export function RunProgress({ run }: { readonly run: Run }) {
  const { progress, isDry } = run;
  const left = progress?.remainingSeconds;
  return (
    <Progress
      label={isDry === true ? 'Dry run' : 'Scavenge'}
      phase={phaseText(run)}
      done={shareOf(run)}
      {...(left != null && { leftMs: Math.ceil(left) * 1_000 })}
      detail={
        progress !== null && (
          <Dotted
            items={[
              <>
                started <Time at={progress.startedAt} />
              </>,
              progress.chunksTotal > 0
                ? `${numberText(progress.chunksDone)} of ${countText(progress.chunksTotal, 'chunk')}`
                : null,
              isDry === true ? 'the log is read twice' : null,
              progress.bytesTotal > 0 && isOfFiles(run)
                ? `${bytesText(progress.bytesDone)} of ${bytesText(progress.bytesTotal)}`
                : null,
              isDry === true ? null : `${bytesText(progress.bytesReclaimed)} reclaimed so far`,
            ]}
          />
        )
      }
    />
  );
}

/** What reads the log from its beginning counts positions, which are no sizes: of a chunk that was not filled all. */
function isOfFiles({ progress, isDry }: Run): boolean {
  return isDry !== true && progress?.phase !== 'Accumulation';
}

/** Ends the run that goes on now, whichever user started it. */
export function StopButton({ run, isSmall = false }: { readonly run: Run; readonly isSmall?: boolean }) {
  const { scavengeId, isDry, current } = run;
  if (scavengeId === null) return null;
  const path = `/admin/scavenge/${encodeURIComponent(scavengeId)}`;
  const stop = async () => {
    try {
      await del(path, { timeoutMs: STOP_MS_MAX });
    } catch (thrown) {
      const error = errorOf(thrown);
      // It has ended by itself meanwhile.
      if (error.status !== 404) throw error;
    }
    toast(isDry === true ? 'The dry run was stopped' : 'The scavenge was stopped', 'info');
    await current.refresh();
  };
  const ask = () =>
    confirm({
      title: isDry === true ? 'Stop the dry run?' : 'Stop the scavenge?',
      action: isDry === true ? 'Stop the dry run' : 'Stop the scavenge',
      isDanger: true,
      run: stop,
      text:
        isDry === true
          ? 'The count so far is lost. Nothing else changes.'
          : 'Space reclaimed so far stays reclaimed. The next start resumes where this one stops, up to the same scavenge point.',
    });
  return (
    <Button icon="stop" isSmall={isSmall} onClick={() => void ask()}>
      Stop
    </Button>
  );
}

/** A run answers when it has stopped, which may take as long as a chunk. */
const STOP_MS_MAX = 300_000;
