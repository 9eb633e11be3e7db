import { HIT, untilHit } from '../../base/step.ts';
import type { LogReader } from '../../log/api.ts';
import {
  decodeCommit,
  FLAG_TRANSACTION_END,
  parsePrepare,
  PREPARE,
  PrepareFields,
  RecordFrame,
} from '../../log/format/records.ts';

/**
 * Visits the prepares of the explicit transaction that the commit record in `commit` ends, in log order.
 * Records of others in between are passed over, and the end record may be gone.
 */
export async function visitTransaction(
  reader: LogReader,
  commit: RecordFrame,
  visit: (frame: RecordFrame, fields: PrepareFields, firstEventNumber: number) => void,
): Promise<void> {
  const { transactionPosition, firstEventNumber, position } = decodeCommit(commit);
  const frame = new RecordFrame();
  const fields = new PrepareFields();
  let at = transactionPosition;
  while (at < position) {
    const from = at;
    if ((await untilHit(() => reader.readForward(from, frame))) !== HIT || frame.position >= position) return;
    at = frame.next;
    if (frame.type !== PREPARE) continue;
    parsePrepare(frame, fields);
    if (fields.transactionPosition !== transactionPosition || fields.isCommitted) continue;
    visit(frame, fields, firstEventNumber);
    if ((fields.flags & FLAG_TRANSACTION_END) !== 0) return;
  }
}
