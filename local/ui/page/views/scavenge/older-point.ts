import type { OlderPointDocument } from '../../../../../handlers/documents/scavenging.ts';
import { absoluteText, msOf } from '../../lib/format.ts';

export function olderText({ why, effectiveNow }: OlderPointDocument): string {
  const ms = msOf(effectiveNow);
  const when = ms === null ? effectiveNow : absoluteText(ms);
  return `${why === 'unfinished' ? 'It goes on with a run that did not end' : 'It goes to a point that no run has reached yet'}: what was deleted, has expired or was limited after ${when} is left to the run after it.`;
}
