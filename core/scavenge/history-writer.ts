import { isSkuaError } from '../errors.ts';
import { guidFromUuidBytes, guidToText } from '../guid.ts';
import type { Ids } from '../ports/ids.ts';
import type { Log } from '../ports/log.ts';
import { ANY, type StreamMetadata } from '../streams/api.ts';
import type { EventStoreInternals } from '../streams/event-store.ts';
import { formatMetadata } from '../streams/metadata.ts';
import { LINK_TYPE, METADATA_TYPE, metastreamOf } from '../streams/names.ts';
import { encodeText } from '../text.ts';

/** The history streams of scavenges; scavenge.md section 10.1. */

/** Links to the first and last event of every run. */
export const HISTORY_STREAM = '$scavenges';
export const STARTED_TYPE = '$scavengeStarted';
export const CHUNK_TYPE = '$scavengeChunksCompleted';
export const MERGE_TYPE = '$scavengeMergeCompleted';
export const TABLE_TYPE = '$scavengeIndexCompleted';
export const COMPLETED_TYPE = '$scavengeCompleted';

/** A write that fails is repeated at once, this often in all. */
const TRIES_MAX = 5;
/** Who may read the history; writing and deleting is for the system alone. */
const READER = '$ops';
const SECONDS_PER_DAY = 86_400;
const NO_BYTES = new Uint8Array(0);

export function historyStreamOf(scavengeId: string): string {
  return `${HISTORY_STREAM}-${scavengeId}`;
}

export interface HistoryParts {
  readonly store: Pick<EventStoreInternals, 'append' | 'readStream' | 'streamInfo'>;
  readonly ids: Ids;
  readonly log: Log;
  /** `host:port` of this node's HTTP interface. */
  readonly nodeEndpoint: string;
  readonly historyMaxAgeDays: number;
  /**
   * The id of the event that a text names, for runs whose parts may be repeated after a crash: the store then takes a repeated
   * event for the one that it has. Default: a random id for each.
   */
  readonly idOf?: (text: string) => string;
}

/** Writes single events of the history. Nothing here rejects: what can't be written is logged, and lost. */
export class HistoryWriter {
  readonly parts: HistoryParts;
  readonly #maxAge: number;
  readonly #metadataJson: Uint8Array;
  #ready: Promise<void> | null = null;

  constructor(parts: HistoryParts) {
    this.parts = parts;
    this.#maxAge = parts.historyMaxAgeDays * SECONDS_PER_DAY;
    this.#metadataJson = encodeText(formatMetadata({ maxAge: this.#maxAge, acl: { read: [READER], write: [], delete: [], metadataRead: [], metadataWrite: [] } }));
  }

  /** Sees to the metadata of the stream of all runs, once. */
  ready(): Promise<void> {
    this.#ready ??= this.ensureMetadata(HISTORY_STREAM);
    return this.#ready;
  }

  /** Appends an event whose members stand in the order given, indented by two spaces. Returns its number, null when it was lost. */
  writeEvent(stream: string, type: string, members: Readonly<Record<string, unknown>>): Promise<number | null> {
    // A run has one end. For the rest, how long it took is all that differs when something is done again.
    const what = type === COMPLETED_TYPE ? '' : JSON.stringify({ ...members, timeTaken: undefined });
    return this.#append(stream, type, true, encodeText(JSON.stringify(members, null, 2)), what);
  }

  /** Links an event of a run from the stream of all runs. */
  async writeLink(scavengeId: string, number: number): Promise<void> {
    const target = `${number}@${historyStreamOf(scavengeId)}`;
    await this.#append(HISTORY_STREAM, LINK_TYPE, false, encodeText(target), target);
  }

  async writeMetadata(stream: string): Promise<void> {
    await this.#append(metastreamOf(stream), METADATA_TYPE, true, this.#metadataJson);
  }

  /** Writes the metadata of a stream unless its age and its readers are right already. */
  async ensureMetadata(stream: string): Promise<void> {
    let metadata: StreamMetadata;
    try {
      metadata = (await this.parts.store.streamInfo(stream)).metadata;
    } catch (error) {
      this.#lost(`the metadata of ${stream}`, error);
      return;
    }
    if (metadata.maxAge !== this.#maxAge || metadata.acl?.read?.includes(READER) !== true) await this.writeMetadata(stream);
  }

  /** `what` tells the event from all others of its type in the stream; null where the same may be written twice. */
  async #append(stream: string, type: string, isJson: boolean, data: Uint8Array, what: string | null = null): Promise<number | null> {
    const { ids, idOf } = this.parts;
    const id = what === null || idOf === undefined ? guidToText(guidFromUuidBytes(ids.uuidBytes()), 0) : idOf(`${stream} ${type} ${what}`);
    for (let tries = 1; ; tries++) {
      try {
        return (await this.parts.store.append(stream, ANY, [{ id, type, isJson, data, metadata: NO_BYTES }])).lastEventNumber;
      } catch (error) {
        if (tries < TRIES_MAX && !isSkuaError(error, 'store_closed') && !isSkuaError(error, 'writer_stopped')) continue;
        this.#lost(`${type} in ${stream}`, error);
        return null;
      }
    }
  }

  #lost(what: string, error: unknown): void {
    this.parts.log.error(`SCAVENGING: ${what} could not be written.`, { error });
  }
}
