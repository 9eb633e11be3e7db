import type { ResumedPointDocument } from '../../../../../handlers/documents/scavenging.ts';
import { absoluteText, msOf } from '../../lib/format.ts';

export function olderText({ why, effectiveNow }: ResumedPointDocument): string {
  const ms = msOf(effectiveNow);
  const when = ms === null ? effectiveNow : absoluteText(ms);
  return `${why === 'unfinished' ? 'It resumes an unfinished run' : 'It works up to a scavenge point that no run has reached yet'}: what was deleted, expired or truncated after ${when} is left to the run after it.`;
}
