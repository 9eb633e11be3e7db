import { isSkuaError } from '../errors.ts';
import type { ScavengeOrder } from '../ports/nodes.ts';
import type { StoredEvent } from '../streams/api.ts';
import { parseFact } from './facts.ts';
import { CYCLES_STREAM } from './streams.ts';
import type { CyclesStore } from './streams.ts';

/** Events behind an order's own that are looked at. More than these follow an order only when it is late. */
const LOOK_AHEAD_EVENTS = 16;

export interface OrderInStream {
  /** Something was decided after this order. */
  readonly isLate: boolean;
  /** Number of what was decided. */
  readonly attempt: number;
  /** The run that the order has started already, or null. */
  readonly scavengeId: string | null;
}

/**
 * What the stream of cycles says about an order to start, so that a node that has forgotten its orders in a restart still knows
 * the late ones. The attempt of an order is the number of its event. A copy of the log that lags behind says less, never
 * anything wrong.
 */
export async function orderInStream(store: CyclesStore, { attempt }: ScavengeOrder): Promise<OrderInStream> {
  let events: readonly StoredEvent[] = [];
  try {
    ({ events } = await store.readStream(CYCLES_STREAM, { direction: 'forward', from: attempt + 1, count: LOOK_AHEAD_EVENTS }));
  } catch (error) {
    if (!isSkuaError(error, 'stream_not_found') && !isSkuaError(error, 'stream_deleted')) throw error;
  }
  for (const event of events) {
    const fact = parseFact(event.type, event.data);
    // New members don't change what was ordered.
    if (fact === null || fact.type === '$cluster-members-changed') continue;
    return fact.type === '$node-scavenge-started' ? started(events, event, fact.scavengeId) : { isLate: true, attempt: event.number, scavengeId: null };
  }
  return { isLate: false, attempt, scavengeId: null };
}

/** The order was carried out; it is late if that is over. */
function started(events: readonly StoredEvent[], event: StoredEvent, scavengeId: string): OrderInStream {
  const later = events.find(({ number, type }) => number > event.number && type !== '$cluster-members-changed');
  return later === undefined ? { isLate: false, attempt: event.number, scavengeId } : { isLate: true, attempt: later.number, scavengeId: null };
}
