import { isSkuaError } from '../errors.ts';
import { COMPLETED_TYPE, historyStreamOf } from '../scavenge/history-writer.ts';
import type { StoredEvent } from '../streams/api.ts';
import { jsonObject } from './facts.ts';
import type { NodeResult } from './facts.ts';
import type { CyclesStore } from './streams.ts';

/** Events from the end of a run's history among which its completion is looked for: they can be out of order. */
const LOOK_BACK_EVENTS = 20;
const RESULTS: readonly NodeResult[] = ['Success', 'Stopped', 'Errored'];

/** How a run ended according to its history, which all nodes have; null when it does not say, or says that the run was cut off. Section 9.2. */
export async function resultFromHistory(store: CyclesStore, scavengeId: string): Promise<NodeResult | null> {
  let events: readonly StoredEvent[];
  try {
    ({ events } = await store.readStream(historyStreamOf(scavengeId), { direction: 'backward', from: 'end', count: LOOK_BACK_EVENTS }));
  } catch (error) {
    if (isSkuaError(error, 'stream_not_found') || isSkuaError(error, 'stream_deleted')) return null;
    throw error;
  }
  for (const event of events) {
    const members = event.type === COMPLETED_TYPE ? jsonObject(event.data) : null;
    if (members?.['scavengeId'] === scavengeId) return RESULTS.find((result) => result === members['result']) ?? null;
  }
  return null;
}
