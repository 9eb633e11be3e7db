import { i32 } from '../../base/bytes.ts';
import { isSkuaError } from '../../base/errors.ts';
import { guidToText } from '../../base/guid.ts';
import { HIT, untilHit } from '../../base/step.ts';
import { decodeText } from '../../base/text.ts';
import type { ChunkTable } from '../../log/api.ts';
import {
  COMMIT,
  decodeCommit,
  decodeEpoch,
  parsePrepare,
  PREPARE,
  PrepareFields,
  RecordFrame,
  SYSTEM,
  takeFrame,
} from '../../log/format/records.ts';

/** An epoch record, as an anchor names it. */
export interface KnownEpoch {
  readonly position: number;
  readonly id: string;
}

/** What the map of an attribute index knows of the log at its end, so that another log is told from it. */
export interface Anchor {
  /** Id of the event that ends the entries, or of the transaction whose commit record does; null where it was gone. */
  readonly recordId: string | null;
  /** The last epoch below; null without one. */
  readonly epoch: KnownEpoch | null;
}

const NONE = '-';
const GUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/** Of an epoch that does not say who it is. */
const NO_ID = '00000000-0000-0000-0000-000000000000';
const ANCHOR = /^([0-9a-f-]{36}|-) (?:(\d{1,16}) ([0-9a-f-]{36})|-)$/;
/** Epochs that are gone back from the last one to the one below the end of an index. */
const EPOCHS_BACK_MAX = 1_000;

export function formatAnchor({ recordId, epoch }: Anchor): string {
  return `${recordId ?? NONE} ${epoch === null ? NONE : `${epoch.position} ${epoch.id}`}`;
}

/** Null for what is no anchor. */
export function parseAnchor(text: string): Anchor | null {
  const parts = ANCHOR.exec(text);
  if (parts === null) return null;
  const [, recordId, position, id] = parts;
  return {
    recordId: recordId === NONE ? null : recordId!,
    epoch: position === undefined ? null : { position: Number(position), id: id! },
  };
}

interface EpochMembers {
  readonly epochId?: unknown;
  readonly prevEpochPosition?: unknown;
}

/** An epoch record with the position of the one before it; -1 without. */
interface LinkedEpoch extends KnownEpoch {
  readonly previous: number;
}

/** The epoch record in a frame. */
export function epochOf(frame: RecordFrame): LinkedEpoch {
  const { position } = frame;
  let epochId: unknown;
  let prevEpochPosition: unknown = -1;
  try {
    ({ epochId, prevEpochPosition } = JSON.parse(decodeText(decodeEpoch(frame).json)) as EpochMembers);
  } catch {
    // It is known by its position alone.
  }
  return {
    position,
    id: typeof epochId === 'string' && GUID.test(epochId) ? epochId.toLowerCase() : NO_ID,
    // A position that is zero is left out.
    previous: typeof prevEpochPosition === 'number' ? prevEpochPosition : 0,
  };
}

/** The epoch record whose frame begins at `at` in records, and that stands at `position` of the log. */
export function epochAt(records: Uint8Array, at: number, position: number): KnownEpoch {
  const frame = new RecordFrame();
  takeFrame(frame, records, at, i32(records, at), position);
  return epochOf(frame);
}

/** Tells by anchors whether an index is of a log. */
export class LogAnchors {
  readonly #log: ChunkTable;
  readonly #lastEpoch: number;
  readonly #frame = new RecordFrame();
  readonly #fields = new PrepareFields();

  /** `lastEpoch`: position of the log's last epoch, as far as is known; -1 for none. */
  constructor(log: ChunkTable, lastEpoch: number) {
    this.#log = log;
    this.#lastEpoch = lastEpoch;
  }

  /** Id of the event or transaction whose record stands at the position; null where none does any more. */
  async recordIdAt(position: number): Promise<string | null> {
    if (!(await this.#isAt(position))) return null;
    const frame = this.#frame;
    if (frame.type === COMMIT) return decodeCommit(frame).correlationId;
    if (frame.type !== PREPARE) return NONE;
    parsePrepare(frame, this.#fields);
    return guidToText(frame.bytes, this.#fields.eventIdAt);
  }

  /**
   * Why the log is another than that in which a map with this end and anchor was written; null where it is the same, or
   * nothing is left that would show it.
   */
  async whyAnother(end: number, text: string | undefined): Promise<string | null> {
    const anchor = text === undefined ? null : parseAnchor(text);
    if (anchor === null) return 'its map does not name the event at its end';
    const id = await this.recordIdAt(end);
    if (id !== null && anchor.recordId !== null && id !== anchor.recordId)
      return `it ends with event ${anchor.recordId} at position ${end}, where there is ${id}`;
    if (id === null && this.#log.chunkAt(end)?.isScavenged !== true)
      return `it ends with an event at position ${end}, where no record starts`;
    return this.#whyOtherEpoch(end, anchor.epoch);
  }

  async #whyOtherEpoch(end: number, epoch: KnownEpoch | null): Promise<string | null> {
    let below = await this.#epochAt(this.#lastEpoch);
    for (let back = 0; below !== null && below.position > end && back < EPOCHS_BACK_MAX; back++)
      below = await this.#epochAt(below.previous);
    if (below === null || below.position > end) below = epoch === null ? null : await this.#epochAt(epoch.position);
    if (below === null) return null;
    if (epoch === null) return `no epoch lies below its end at ${end}, and one lies at ${below.position}`;
    return below.position === epoch.position && below.id === epoch.id
      ? null
      : `the last epoch below its end is ${epoch.id} at ${epoch.position}, and in the log it is ${below.id} at ${below.position}`;
  }

  async #epochAt(position: number): Promise<LinkedEpoch | null> {
    return (await this.#isAt(position)) && this.#frame.type === SYSTEM ? epochOf(this.#frame) : null;
  }

  async #isAt(position: number): Promise<boolean> {
    const log = this.#log;
    if (position < 0 || position >= log.end) return false;
    try {
      return (
        (await untilHit(() => {
          const boundary = log.isBoundary(position);
          return boundary === HIT ? log.readAt(position, this.#frame) : boundary;
        })) === HIT
      );
    } catch (error) {
      if (isSkuaError(error, 'log_corrupt')) return false;
      throw error;
    }
  }
}
