import { absoluteText, msOf } from '../../lib/format.ts';

/** A scavenge point of the past, up to which a run goes: what became removable since is left to the run after it. */
export interface OlderPoint {
  readonly why: 'unfinished' | 'unreached';
  readonly position: number;
  readonly eventNumber: number;
  readonly effectiveNow: string;
  readonly threshold: number;
}

export function olderText({ why, effectiveNow }: OlderPoint): string {
  const ms = msOf(effectiveNow);
  const when = ms === null ? effectiveNow : absoluteText(ms);
  return `${why === 'unfinished' ? 'It goes on with a run that did not end' : 'It goes to a point that no run has reached yet'}: what was deleted, has expired or was limited after ${when} is left to the run after it.`;
}
