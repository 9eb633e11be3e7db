import { Badge } from '../../parts/badge.tsx';
import type { Tone } from '../../parts/badge.tsx';
import type { PastRun } from './past-runs.ts';

/** The tones of the ends of runs. */
export const RESULT_TONES: Readonly<Record<string, Tone>> = {
  Success: 'ok',
  Stopped: 'warn',
  Interrupted: 'warn',
  Errored: 'bad',
  InProgress: 'accent',
};

/** How a run has ended. Of one without an end only its own node knows whether it goes on. */
export function Result({
  run: { scavengeId, result },
  runningId,
}: {
  readonly run: PastRun;
  readonly runningId: string | null;
}) {
  return result === null ? (
    <Badge tone="accent">{scavengeId === runningId ? 'running' : 'no end yet'}</Badge>
  ) : (
    <Badge tone={RESULT_TONES[result] ?? 'plain'}>{result}</Badge>
  );
}
