import { SkuaError } from '../../base/errors.ts';
import type { Checkpoints } from './checkpoint.ts';
import { END, HIT, untilHit } from '../../base/step.ts';
import type { LogReader } from '../log-reader.ts';
import { decodeEpoch, parsePrepare, PREPARE, PrepareFields, RecordFrame, streamOf, SYSTEM } from './records.ts';
import { decodeText } from '../../base/text.ts';

/** The stream of epoch events, which are kept out of `$all`. */
export const EPOCH_STREAM = '$epoch-information';

/** A start writes an epoch record and one event behind it; a few more do no harm. */
const UNNOTED_RECORDS_MAX = 8;

export interface LastEpoch {
  readonly position: number;
  readonly number: number;
  /** Expected version of the `$epoch-information` event that follows the record; null when none follows. */
  readonly informationExpectedVersion: number | null;
}

/**
 * The newest epoch record: at epoch.chk, or found by reading the log backwards when that file does not lead to one.
 * Null for a log without epochs. Behind the record that epoch.chk names there may be newer ones, whose starts ended
 * before that file followed. No writer appends before that file has followed, so they are the log's last records.
 */
export async function findLastEpoch(reader: LogReader, checkpoints: Checkpoints): Promise<LastEpoch | null> {
  const frame = new RecordFrame();
  const noted = checkpoints.epoch.value;
  const isNoted = noted >= 0 && noted < reader.end && (await isEpochAt(reader, noted, frame));
  if (await searchBackward(reader, frame, isNoted ? UNNOTED_RECORDS_MAX : Infinity)) return describe(reader, frame);
  return isNoted && (await isEpochAt(reader, noted, frame)) ? describe(reader, frame) : null;
}

/** Looks for an epoch among the last records of the log, and leaves it in `frame`. */
async function searchBackward(reader: LogReader, frame: RecordFrame, recordsMax: number): Promise<boolean> {
  let at = reader.end;
  for (let records = 0; records < recordsMax; records++) {
    const before = at;
    if ((await untilHit(() => reader.readBackward(before, frame))) === END) return false;
    if (frame.type === SYSTEM) return true;
    at = frame.position;
  }
  return false;
}

async function isEpochAt(reader: LogReader, position: number, frame: RecordFrame): Promise<boolean> {
  try {
    if ((await untilHit(() => reader.isBoundary(position))) !== HIT) return false;
    return (await untilHit(() => reader.readAt(position, frame))) === HIT && frame.type === SYSTEM;
  } catch (error) {
    if (error instanceof SkuaError && error.code === 'log_corrupt') return false;
    throw error;
  }
}

async function describe(reader: LogReader, frame: RecordFrame): Promise<LastEpoch> {
  const { position, json } = decodeEpoch(frame);
  // Members that are zero are left out.
  const number = Number((JSON.parse(decodeText(json)) as { epochNumber?: number }).epochNumber ?? 0);
  const next = frame.next;
  const fields = new PrepareFields();
  if ((await untilHit(() => reader.readForward(next, frame))) !== HIT || frame.type !== PREPARE)
    return { position, number, informationExpectedVersion: null };
  parsePrepare(frame, fields);
  return {
    position,
    number,
    informationExpectedVersion: streamOf(frame, fields) === EPOCH_STREAM ? fields.expectedVersion : null,
  };
}
