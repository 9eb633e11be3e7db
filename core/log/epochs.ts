import { SkuaError } from '../errors.ts';
import type { Checkpoints } from './checkpoint.ts';
import { END, HIT, MISS, type LogReader } from './log-reader.ts';
import { decodeEpoch, parsePrepare, PREPARE, PrepareFields, RecordFrame, streamOf, SYSTEM } from './records.ts';
import { decodeText } from '../text.ts';

export const EPOCH_STREAM = '$epoch-information';

export interface LastEpoch {
  readonly position: number;
  readonly number: number;
  /** Expected version of the `$epoch-information` event that follows the record; null when none follows. */
  readonly informationExpectedVersion: number | null;
}

/**
 * The newest epoch record: at epoch.chk, or found by reading the log backwards when that file does not lead to one;
 * disk-format.md section 4.1. Null for a log without epochs.
 */
export async function findLastEpoch(reader: LogReader, checkpoints: Checkpoints): Promise<LastEpoch | null> {
  const frame = new RecordFrame();
  const noted = checkpoints.epoch.value;
  if (noted >= 0 && noted < reader.end && (await isEpochAt(reader, noted, frame))) return describe(reader, frame);
  let at = reader.end;
  for (;;) {
    const outcome = reader.readBackward(at, frame);
    if (outcome === MISS) {
      await reader.fill();
      continue;
    }
    if (outcome === END) return null;
    if (frame.type === SYSTEM) return describe(reader, frame);
    at = frame.position;
  }
}

async function isEpochAt(reader: LogReader, position: number, frame: RecordFrame): Promise<boolean> {
  try {
    let outcome = reader.isBoundary(position);
    while (outcome === MISS) {
      await reader.fill();
      outcome = reader.isBoundary(position);
    }
    if (outcome !== HIT) return false;
    outcome = reader.readAt(position, frame);
    while (outcome === MISS) {
      await reader.fill();
      outcome = reader.readAt(position, frame);
    }
    return outcome === HIT && frame.type === SYSTEM;
  } catch (error) {
    if (error instanceof SkuaError && error.code === 'log_corrupt') return false;
    throw error;
  }
}

async function describe(reader: LogReader, frame: RecordFrame): Promise<LastEpoch> {
  const { position, json } = decodeEpoch(frame);
  // Members that are zero are left out; disk-format.md section 3.7.
  const number = Number((JSON.parse(decodeText(json)) as { epochNumber?: number }).epochNumber ?? 0);
  const next = frame.next;
  const fields = new PrepareFields();
  let outcome = reader.readForward(next, frame);
  while (outcome === MISS) {
    await reader.fill();
    outcome = reader.readForward(next, frame);
  }
  if (outcome !== HIT || frame.type !== PREPARE) return { position, number, informationExpectedVersion: null };
  parsePrepare(frame, fields);
  return { position, number, informationExpectedVersion: streamOf(frame, fields) === EPOCH_STREAM ? fields.expectedVersion : null };
}
