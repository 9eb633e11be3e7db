import { SkuaError } from '../../base/errors.ts';
import { EPOCH_STREAM } from '../../log/format/epochs.ts';
import type { Authorize, EventStore } from '../../streams/api.ts';
import type { Membership } from '../api.ts';

interface AuthorityParts {
  readonly store: Pick<EventStore, 'streamInfo' | 'streamInfoNow'>;
  readonly membership: Pick<Membership, 'isLeader'>;
}

/**
 * Lets a write take its place only while no epoch is in the log behind the one under which this member leads now: what
 * a leader decided before it stood still for an hour is refused, however late it comes. It costs nothing, since it is
 * asked while the write is placed. Rejects with `not_leader` where this member does not lead by its own copy, and so
 * does the write later.
 */
export async function leadAuthority({ store, membership }: AuthorityParts): Promise<Authorize> {
  const { lastEventNumber } = store.streamInfoNow?.(EPOCH_STREAM) ?? (await store.streamInfo(EPOCH_STREAM));
  // Asked behind the number: where it still leads, no epoch of others can be in that number.
  if (!membership.isLeader)
    throw new SkuaError('not_leader', 'Node is not the leader', { hint: 'Try again in a moment.' });
  return (_, endOf) =>
    endOf(EPOCH_STREAM)?.lastEventNumber === lastEventNumber
      ? null
      : new SkuaError('not_leader', 'Another member has become the leader', { hint: 'Try again in a moment.' });
}
