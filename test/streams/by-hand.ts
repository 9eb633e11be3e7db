import { putI32, putI64 } from '../../core/base/bytes.ts';
import { encodeText } from '../../core/base/text.ts';
import { encodePrepare } from '../../core/log/format/records.ts';
import type { MemoryLog } from './doubles.ts';

export const BEGIN = 2;
export const DATA = 1;
export const END = 4;
export const DELETE = 8;

/** Writes records of explicit transactions, as the old TCP interface did. */
export class ByHand {
  readonly #log: MemoryLog;
  #ids = 0;

  constructor(log: MemoryLog) {
    this.#log = log;
  }

  prepare(
    stream: string,
    flags: number,
    transaction: number,
    offset: number,
    expected: number,
    { type = 'old', metadata = '' }: { readonly type?: string; readonly metadata?: string } = {},
  ): number {
    const { end: position } = this.#log;
    const id = new Uint8Array(16).fill(++this.#ids);
    const out = new Uint8Array(512);
    const isData = (flags & 1) !== 0;
    const length = encodePrepare(out, 0, {
      position,
      flags,
      transactionPosition: transaction < 0 ? position : transaction,
      transactionOffset: offset,
      expectedVersion: expected,
      stream: encodeText(stream),
      eventId: id,
      correlationId: id,
      timestampMs: 1_700_000_000_000,
      timestampTicks: 0,
      eventType: encodeText(isData ? type : ''),
      data: encodeText(isData ? `${offset}` : ''),
      metadata: encodeText(metadata),
    });
    this.#log.appendRaw(out.slice(0, length));
    return position;
  }

  commit(transaction: number, first: number): number {
    const { end: position } = this.#log;
    const out = new Uint8Array(66);
    putI32(out, 0, 58);
    out[4] = 1;
    out[5] = 1;
    putI64(out, 6, position);
    putI64(out, 14, transaction);
    putI64(out, 22, first);
    putI64(out, 30, position);
    out.fill(7, 38, 54);
    putI32(out, 62, 58);
    this.#log.appendRaw(out);
    return position;
  }
}
