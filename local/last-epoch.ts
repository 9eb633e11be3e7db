import { isSkuaError } from '../core/errors.ts';
import type { EventStore } from '../core/streams/api.ts';
import { decodeText } from '../core/text.ts';

/** The epoch in which the node leads, as `/gossip` shows it. */
export interface LastEpoch {
  /** Position of its record. */
  readonly position: number;
  readonly number: number;
  readonly id: string;
}

const STREAM = '$epoch-information';
const NONE: LastEpoch = { position: -1, number: -1, id: '00000000-0000-0000-0000-000000000000' };

/** The newest epoch of the log. Members that are zero are left out of its record (disk-format.md section 3.7). */
export async function lastEpoch(store: Pick<EventStore, 'readEvent'>): Promise<LastEpoch> {
  try {
    const { data } = await store.readEvent(STREAM, 'last');
    const { epochPosition = 0, epochNumber = 0, epochId = NONE.id } = JSON.parse(decodeText(data)) as { epochPosition?: number; epochNumber?: number; epochId?: string };
    return { position: epochPosition, number: epochNumber, id: epochId };
  } catch (error) {
    if (isSkuaError(error, 'stream_not_found') || isSkuaError(error, 'event_not_found')) return NONE;
    throw error;
  }
}
