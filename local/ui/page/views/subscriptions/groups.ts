import type { GroupConfigDocument, GroupMembers } from '../../../../../handlers/documents/subscriptions.ts';

/** What clients of today say and are told of the settings of a group. */
export type GroupConfig = Omit<GroupConfigDocument, 'startFrom' | 'preferRoundRobin'>;

/** The name of the source of groups that take the whole log. */
export const ALL = '$all';

/** Path of a group for requests. */
export function groupPath(stream: string, group: string): string {
  return `/subscriptions/${encodeURIComponent(stream)}/${encodeURIComponent(group)}`;
}

export interface Lag {
  readonly amount: number;
  readonly unit: 'events' | 'bytes';
  /** It may be more: the group has not read to the end, and knows of nothing behind what it has read ahead. */
  readonly isLeast: boolean;
}

/** In which a lag is counted, for people: events that are gone from a stream have their numbers still. */
export const LAG_UNITS: Readonly<Record<Lag['unit'], string>> = {
  events: 'event numbers',
  bytes: 'bytes of log positions',
};

/**
 * How far the checkpoint lies behind the last event that is known: in numbers of events, and for groups of `$all`,
 * which know places of the log only, in bytes. Null while the number is unknown. Before the first checkpoint all counts
 * from the start of the group, where that is known.
 */
export function lagOf(
  { status, lastCheckpointedEventPosition: done, lastKnownEventPosition: known }: GroupMembers,
  startPosition?: string,
): Lag | null {
  if (known === null) return null;
  const from = done ?? startPosition;
  if (from === undefined) return null;
  const unit = known.startsWith('C:') ? 'bytes' : 'events';
  const last = placeOf(known);
  const first = placeOf(from);
  // From the end on: what there was at the beginning is none of its business, and how much came since is not known yet.
  if (last === null || first === null || first < 0) return null;
  const amount = Math.max(0, last - first + (done === null && unit === 'events' ? 1 : 0));
  return { amount, unit, isLeast: status.startsWith('Behind') };
}

function placeOf(text: string): number | null {
  const value = Number(/^C:(-?\d+)\//.exec(text)?.[1] ?? text);
  return Number.isFinite(value) ? value : null;
}

/** `Live`, `Behind`, either with `, OutstandingPageRequest`, or `NotReady`, in words that one need not look up. */
export function statusOf(
  status: string,
  consumers: number,
): {
  readonly word: string;
  readonly tone: 'ok' | 'info' | 'warn' | 'plain';
  readonly title: string;
} {
  if (consumers === 0 && /^(Live|Behind)/.test(status))
    return {
      word: 'No consumers',
      tone: 'plain',
      title:
        'No consumer is connected, so it sends nothing. HTTP clients, which fetch request by request, do not count.',
    };
  if (status.startsWith('Live'))
    return { word: 'Live', tone: 'ok', title: 'It has caught up and takes events as they are written.' };
  if (status.startsWith('Behind'))
    return { word: 'Catching up', tone: 'info', title: 'It is still reading older events of its stream.' };
  return { word: 'Not ready', tone: 'warn', title: 'It is being loaded or has not started yet.' };
}
