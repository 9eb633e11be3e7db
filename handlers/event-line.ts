import { timestampText } from '../core/time.ts';
import type { StoredEvent } from '../core/streams/api.ts';
import { richMembers } from './embed.ts';

/** Position of an event in `$all` as text: commit and prepare position. It is the `id` of server-sent events of `$all`. */
export function positionText(event: StoredEvent): string {
  const place = event.link ?? event;
  return `${place.position}/${place.preparePosition}`;
}

/** One event as one line of JSON: the members of `embed=body`, then `updated` and `position`. For NDJSON and server-sent events. */
export function eventLine(event: StoredEvent): string {
  const place = event.link ?? event;
  return `{${richMembers(event, 'body', '', ':')}"updated":"${timestampText(place.createdMs, place.createdTicks)}","position":"${positionText(event)}"}`;
}
