import { isSkuaError } from '../errors.ts';
import type { StoredEvent } from '../streams/api.ts';
import type { StreamAccess } from './api.ts';
import type { Principal } from './principal.ts';

/**
 * The events of a page that was read with links resolved, where a target in a stream that the caller may not read is
 * replaced by the link itself, as if it were gone. Without this whoever may write one stream could read any event of the
 * others, the records of users among them, through a link of their own making.
 */
export function withoutForbiddenTargets(access: StreamAccess, principal: Principal, events: StoredEvent[]): StoredEvent[] | Promise<StoredEvent[]> {
  if (events.every(({ link }) => link === null)) return events;
  return Promise.all(events.map((event) => (event.link === null ? event : shownTarget(access, principal, event, event.link))));
}

async function shownTarget(access: StreamAccess, principal: Principal, event: StoredEvent, link: StoredEvent): Promise<StoredEvent> {
  try {
    await access.check(principal, 'read', event.stream);
    return event;
  } catch (error) {
    if (!isSkuaError(error, 'access_denied') && !isSkuaError(error, 'not_authenticated')) throw error;
    link.linkTargetMissing = true;
    return link;
  }
}
