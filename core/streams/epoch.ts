import { guidFromUuidBytes, guidToText } from '../guid.ts';
import { FRAME_BYTES, prepareFrameBytes } from '../log/records.ts';
import type { Ids } from '../ports/ids.ts';
import { encodeText } from '../text.ts';
import { timestampText } from '../time.ts';
import type { EpochInput } from './append-request.ts';
import { EPOCH_STREAM } from './names.ts';

/** Bytes of a system record without its data. */
const SYSTEM_BYTES = 32;

/** Type of the events of the epoch stream, which has the same name. */
export const EPOCH_TYPE_BYTES = encodeText(EPOCH_STREAM);

/** Framed size of the epoch record, and of the event behind it. */
export function epochRecordBytes(json: Uint8Array): number {
  return FRAME_BYTES + SYSTEM_BYTES + json.length;
}
export function epochEventBytes(json: Uint8Array): number {
  return prepareFrameBytes(EPOCH_TYPE_BYTES.length, EPOCH_TYPE_BYTES.length, json.length, 0);
}

/** The JSON of an epoch record at `position` (disk-format.md section 3.7): members in this order, zeros left out. */
export function epochJson(epoch: EpochInput, position: number, ids: Ids, ms: number, ticks: number): Uint8Array {
  const members: [string, string | number][] = [
    ['epochPosition', position],
    ['epochNumber', epoch.epochNumber],
    ['epochId', guidToText(guidFromUuidBytes(ids.uuidBytes()), 0)],
    ['prevEpochPosition', epoch.prevEpochPosition],
    ['timeStamp', timestampText(ms, ticks)],
    ['leaderInstanceId', epoch.leaderInstanceId],
  ];
  const lines = members.filter(([, value]) => value !== 0).map(([name, value]) => `  "${name}": ${JSON.stringify(value)}`);
  return encodeText(`{\n${lines.join(',\n')}\n}`);
}
