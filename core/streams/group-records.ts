import { i32 } from '../bytes.ts';
import { SkuaError } from '../errors.ts';
import { FRAME_BYTES, RECORD_BYTES_MAX, type RecordFrame } from '../log/records.ts';

/** Shows the framed records of a group one after the other in `frame`; the first starts at the position `start` of the log. Throws `log_corrupt`. */
export function eachRecord(records: Uint8Array, start: number, frame: RecordFrame, visit: (frame: RecordFrame) => void): void {
  for (let at = 0; at < records.length;) {
    const length = at + FRAME_BYTES <= records.length ? i32(records, at) : -1;
    const isWhole = length > 0 && length <= RECORD_BYTES_MAX && at + length + FRAME_BYTES <= records.length && i32(records, at + 4 + length) === length;
    frame.bytes = records;
    frame.at = at + 4;
    frame.length = length;
    frame.position = start + at;
    frame.next = start + at + length + FRAME_BYTES;
    if (!isWhole || frame.ownPosition !== frame.position) {
      throw new SkuaError('log_corrupt', `A commit holds something that is no record at position ${start + at} of the log (offset ${at} of its records). Restore the commit object from a version or a backup of the bucket.`, { position: start + at, offset: at });
    }
    visit(frame);
    at += length + FRAME_BYTES;
  }
}
