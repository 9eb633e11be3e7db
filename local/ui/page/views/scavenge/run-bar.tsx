import { del } from '../../api/client.ts';
import { errorOf } from '../../api/problem.ts';
import { bytesText, countText, numberText } from '../../lib/format.ts';
import { Button } from '../../parts/button.tsx';
import { confirm } from '../../parts/confirm.tsx';
import { Progress } from '../../parts/progress.tsx';
import { Time } from '../../parts/time.tsx';
import { toast } from '../../parts/toast.tsx';
import type { Run } from './run.ts';

/** What each phase does, in the order in which a scavenge goes through them. */
export const PHASES = [
  { name: 'Accumulation', about: 'Reads what is new in the log, and notes which streams are limited or deleted.' },
  { name: 'Calculation', about: 'Works out for each of these streams which events go.' },
  { name: 'Chunk execution', about: 'Writes chunks anew without what goes, those that weigh enough.' },
  { name: 'Chunk merging', about: 'Puts small neighbours into one file.' },
  { name: 'Index execution', about: 'Takes what is gone out of the index.' },
  { name: 'Cleaning', about: 'Forgets what is not needed for the next scavenge.' },
] as const;

/** How far the phase is, from 0 to 1; null while nobody can say. */
export function shareOf({ progress }: Run): number | null {
  if (progress === null || progress.phaseShare === undefined) return null;
  return progress.bytesTotal === 0 && progress.chunksTotal === 0 && progress.phaseShare === 0 ? null : progress.phaseShare;
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
      label={isDry === true ? 'Dry run' : 'Scavenge'} phase={phaseText(run)} done={shareOf(run)} {...(left != null && { leftMs: Math.ceil(left) * 1_000 })}
      detail={progress !== null && (
        <span class="row wrap">
          <span>started <Time at={progress.startedAt} /></span>
          {progress.chunksTotal > 0 && <span>{numberText(progress.chunksDone)} of {countText(progress.chunksTotal, 'chunk')}</span>}
          {progress.bytesTotal > 0 && <span>{bytesText(progress.bytesDone)} of {bytesText(progress.bytesTotal)}{isDry === true && ' (the log is read twice)'}</span>}
          {isDry !== true && <span>{bytesText(progress.bytesReclaimed)} won so far</span>}
        </span>
      )}
    />
  );
}

/** Ends the run that goes on now, whoever started it. */
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
  const ask = () => confirm({
    title: isDry === true ? 'Stop the dry run?' : 'Stop the scavenge?', action: isDry === true ? 'Stop the dry run' : 'Stop the scavenge', isDanger: true, run: stop,
    text: isDry === true ? 'What it has counted so far is lost. Nothing else changes.' : 'What it has won so far stays. The next start goes on where this one stops, to the same point of the log.',
  });
  return <Button icon="stop" isSmall={isSmall} onClick={() => void ask()}>Stop</Button>;
}

/** A run answers when it has stopped, which may take as long as a chunk. */
const STOP_MS_MAX = 300_000;
