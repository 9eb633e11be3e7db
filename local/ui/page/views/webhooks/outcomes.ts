import type { WebhooksView } from '../../../../../handlers/documents/node.ts';

/** What became of calls: in which of three sorts it is counted, and in words. */
export interface Outcome {
  readonly sort: 'taken' | 'skipped' | 'refused';
  readonly text: string;
}

export const OUTCOMES: Readonly<Record<string, Outcome>> = {
  accepted: { sort: 'taken', text: 'Accepted, written after the answer' },
  written: { sort: 'taken', text: 'Written' },
  duplicate: { sort: 'taken', text: 'Repeated delivery, not written again' },
  challenge: { sort: 'taken', text: 'Answered the sender that somebody is there' },
  skipped: { sort: 'skipped', text: 'Skipped by the script' },
  'refused-type': { sort: 'refused', text: 'Content type is not JSON' },
  'refused-body': { sort: 'refused', text: 'Body too long, or too slow' },
  'refused-signature': { sort: 'refused', text: 'Signature missing or wrong' },
  'refused-json': { sort: 'refused', text: 'Body is not JSON' },
  'script-failed': { sort: 'refused', text: 'The script failed' },
  'script-timed-out': { sort: 'refused', text: 'The script took too long' },
  'script-unavailable': { sort: 'refused', text: 'No capacity to run the script' },
  'refused-route': { sort: 'refused', text: 'The script named an invalid stream or type' },
  'refused-stream': { sort: 'refused', text: 'The script named a stream that is not allowed' },
  full: { sort: 'refused', text: 'Too many accepted calls waited to be written' },
  stopping: { sort: 'refused', text: 'The connector was stopping' },
  'write-failed': { sort: 'refused', text: 'The event could not be written' },
  'write-timed-out': { sort: 'refused', text: 'Not written in time' },
  'client-gone': { sort: 'refused', text: 'The sender disconnected before the answer' },
  'not-active': { sort: 'refused', text: 'The connector was not running' },
  failed: { sort: 'refused', text: 'Failed inside the node' },
};

export function outcomeOf(name: string): Outcome {
  return OUTCOMES[name] ?? { sort: 'refused', text: name };
}

export function countOf(
  { outcomes }: Pick<WebhooksView['connectors'][number], 'outcomes'>,
  sort: Outcome['sort'],
): number {
  let count = 0;
  for (const [name, value] of Object.entries(outcomes)) if (outcomeOf(name).sort === sort) count += value;
  return count;
}
