import { isSkuaError } from '../../base/errors.ts';
import { BLOCK_BYTES } from '../../cache/cache.ts';
import type { ChangedBlock } from '../../log/block-sums/block-sums.ts';
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
  readonly #changed: ChangedBlock;
  /** The likely ones, and then the first of the others. */
  readonly #named: Suspect[] = [];
  #total = 0;
  #likely = 0;
  #first = 0;
  #last = 0;

  constructor(changed: ChangedBlock) {
    this.#changed = changed;
  }

  get total(): number {
    return this.#total;
  }

  /** `from` and `to` are offsets in the file: of the record, and of what follows it. */
  add(suspect: Suspect, from: number, to: number): void {
    const { byteAt } = this.#changed;
    if (this.#total++ === 0) this.#first = suspect.position;
    this.#last = suspect.position;
    const isLikely = byteAt === null ? !suspect.isReadable : byteAt >= from && byteAt < to;
    if (isLikely) this.#named.splice(this.#likely++, 0, suspect);
    else this.#named.push(suspect);
    if (this.#named.length > SUSPECTS_MAX) this.#named.pop();
    this.#likely = Math.min(this.#likely, SUSPECTS_MAX);
  }

  finding(file: string): ProofFinding {
    const { block, byteAt } = this.#changed;
    const why = `the bytes from offset ${block * BLOCK_BYTES} on differ from their checksum in ${BLOCK_SUMS_FILE}`;
    const likely = this.#named.slice(0, this.#likely).map(nameOf);
    const others = this.#named.slice(this.#likely).map(nameOf);
    const rest = this.#total - this.#named.length;
    if (rest > 0) others.push(`and ${rest} more`);
    const which =
      this.#total === 1
        ? `The record at position ${this.#first}`
        : `One or more of the ${this.#total} records at positions ${this.#first} to ${this.#last}`;
    const by = byteAt === null ? '' : `: another byte at offset ${byteAt}, and nothing else, makes this difference`;
    const most = likely.length === 0 ? '' : ` Most likely it is ${likely.join(', or ')}${by}.`;
    const all = others.length === 0 ? '' : ` ${most === '' ? 'They' : 'The others'} are ${others.join(', ')}.`;
    const told = this.#total === 1 ? ` It is ${[...likely, ...others].join()}.` : most + all;
    return {
      ...finding(
        'changed',
        file,
        this.#likely === 0 ? this.#first : this.#named[0]!.position,
        `${which} of ${file} was changed: ${why}.${told}`,
      ),
      likely: this.#likely,
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

function nameOf({ position, stream, number, isReadable }: Suspect): string {
  if (!isReadable) return `the record at position ${position}, which can't be read`;
  const what =
    stream === null
      ? 'a record of the log itself'
      : number === null
        ? `a record of stream '${stream}'`
        : `event ${number} of stream '${stream}'`;
  return `${what} at position ${position}`;
}
