import { isSkuaError } from '../../base/errors.ts';
import { BLOCK_BYTES } from '../../cache/cache.ts';
import { BLOCK_SUMS_FILE } from '../../log/format/block-sums-file.ts';
import {
  COMMIT,
  FLAG_STREAM_DELETE,
  parsePrepare,
  PREPARE,
  PrepareFields,
  RecordFrame,
  streamOf,
  SYSTEM,
} from '../../log/format/records.ts';
import { finding, type ProofFinding, type Suspect } from './verify-report.ts';

/** Suspects that a finding names; the others are counted. */
const SUSPECTS_MAX = 8;
/** Of the length before a payload. */
const LENGTH_BYTES = 4;

const fields = new PrepareFields();

/** The records that reach into a block whose bytes were changed: one or more of them are not as they were. */
export class BlockSuspects {
  /** The first ones, and the one that can't be read wherever it lies. */
  readonly #named: Suspect[] = [];
  #total = 0;
  #first = 0;
  #last = 0;

  get total(): number {
    return this.#total;
  }

  add(suspect: Suspect): void {
    if (this.#total++ === 0) this.#first = suspect.position;
    this.#last = suspect.position;
    if (suspect.isReadable && this.#named.length === SUSPECTS_MAX) return;
    if (suspect.isReadable) this.#named.push(suspect);
    else this.#named.unshift(suspect);
    if (this.#named.length > SUSPECTS_MAX) this.#named.pop();
  }

  /** `block` counts from the beginning of the file. */
  finding(file: string, block: number): ProofFinding {
    const [likely] = this.#named;
    const why = `the bytes from offset ${block * BLOCK_BYTES} on differ from their checksum in ${BLOCK_SUMS_FILE}`;
    const names = this.#named.filter(({ isReadable }) => isReadable).map(nameOf);
    const rest = this.#total - this.#named.length;
    const unreadable = this.#named.filter(({ isReadable }) => !isReadable).map(({ position }) => position);
    const message =
      this.#total === 1
        ? `The record at position ${this.#first} of ${file} was changed: ${why}. It ${names.length === 1 ? `is ${names[0]}` : "can't be read"}.`
        : `One or more of the ${this.#total} records at positions ${this.#first} to ${this.#last} of ${file} was changed: ${why}.${
            unreadable.length === 0
              ? ''
              : ` Most likely it is the one at position ${unreadable.join(' or ')}, which can't be read.`
          } ${unreadable.length === 0 ? 'They' : 'The others'} are ${names.join(', ')}${rest === 0 ? '' : `, and ${rest} more`}.`;
    return {
      ...finding('changed', file, likely!.isReadable ? this.#first : likely!.position, message),
      records: this.#named,
      recordsTotal: this.#total,
    };
  }
}

/** A record by its stream and number, as far as it can be read; `framed` is null where not even its frame is whole. */
export function suspectAt(position: number, framed: Uint8Array | null): Suspect {
  const unreadable = { position, stream: null, number: null, isReadable: false };
  if (framed === null) return unreadable;
  const frame = new RecordFrame();
  frame.bytes = framed;
  frame.at = LENGTH_BYTES;
  frame.length = framed.length - LENGTH_BYTES;
  frame.position = position;
  if (frame.type !== PREPARE) return { ...unreadable, isReadable: frame.type === COMMIT || frame.type === SYSTEM };
  try {
    parsePrepare(frame, fields);
  } catch (error) {
    if (!isSkuaError(error, 'log_corrupt')) throw error;
    return unreadable;
  }
  const hasNumber = fields.isCommitted && fields.isEvent && (fields.flags & FLAG_STREAM_DELETE) === 0;
  return { position, stream: streamOf(frame, fields), number: hasNumber ? fields.eventNumber : null, isReadable: true };
}

function nameOf({ position, stream, number }: Suspect): string {
  const what =
    stream === null
      ? 'a record of the log itself'
      : number === null
        ? `a record of stream '${stream}'`
        : `event ${number} of stream '${stream}'`;
  return `${what} at position ${position}`;
}
