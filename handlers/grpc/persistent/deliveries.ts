import type { Delivery } from '../../../core/persistent/api.ts';
import type { StoredEvent } from '../../../core/streams/api.ts';
import { withoutForbidden } from '../../streams/access.ts';
import type { GrpcCall } from '../call.ts';
import { eventBlock } from '../events/event-block.ts';

/** Bytes of data and metadata with which a block is sent; the event that it ends with may make it longer. */
const BLOCK_BYTES = 65_536;

/**
 * Messages for a consumer, many in a block, each made when it is asked for. Links stay links where the caller may not read what they point to. What was delivered is others'
 * too, and is not changed.
 */
export async function deliveryBlocks({ call, app }: GrpcCall, deliveries: readonly Delivery[], isStructured: boolean): Promise<Iterable<Uint8Array>> {
  const events: StoredEvent[] = deliveries.map(({ event }) => event);
  const links = events.map((event) => event.link !== null || event.linkTargetMissing);
  if (links.includes(true)) {
    for (let i = 0; i < events.length; i++) if (links[i]) events[i] = ofLink(events[i]!);
    await withoutForbidden(call, app, events);
  }
  // A link that leads to nothing for this caller is sent as a link, also by groups that resolve none: what they park is resolved.
  return blocks(events, deliveries, isStructured, events.map((event, i) => links[i]! && event.link === null));
}

/** A resolved event has the positions of its link. */
function ofLink(event: StoredEvent): StoredEvent {
  const { position, preparePosition } = event.link ?? event;
  return { ...event, position, preparePosition };
}

function* blocks(events: readonly StoredEvent[], deliveries: readonly Delivery[], isStructured: boolean, isLinkOnly: readonly boolean[]): Generator<Uint8Array, void, undefined> {
  for (let from = 0; from < events.length;) {
    const resolvesLinks = isLinkOnly[from]!;
    let to = from;
    for (let bytes = 0; to < events.length && isLinkOnly[to] === resolvesLinks && bytes < BLOCK_BYTES; to++) bytes += bytesOf(events[to]!);
    yield eventBlock(events.slice(from, to), { isStructured, resolvesLinks }, deliveries.slice(from, to).map(({ retryCount }) => retryCount));
    from = to;
  }
}

function bytesOf({ data, metadata, link }: StoredEvent): number {
  return data.length + metadata.length + (link === null ? 0 : link.data.length + link.metadata.length);
}
