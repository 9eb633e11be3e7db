import { isSkuaError, SkuaError } from '../../base/errors.ts';
import { guidFromUuidBytes, guidToText } from '../../base/guid.ts';
import { retryConflicts } from '../../base/retry-conflicts.ts';
import { TOMBSTONE } from '../../log/format/records.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Ids } from '../../ports/ids.ts';
import type { EventStore, NewEvent, StoredEvent, StreamMetadata } from '../../streams/api.ts';
import { formatMetadata } from '../../streams/format/metadata.ts';
import { METADATA_TYPE, metastreamOf } from '../../streams/format/names.ts';
import { encodeText } from '../../base/text.ts';
import { deliveriesStream, rejectionsStream } from '../format/stream-names.ts';
import { applyEvent, eventBytes, objectOf, timeText } from './connector-events.ts';
import type { ConnectorEvent, ConnectorRecord } from './connector-events.ts';

/** The streams that connectors are kept in (core/webhook/README.md, "What is stored"). */

const SNAPSHOTS_STREAM = '$connectors-ctrl/registry-snapshots';
const SNAPSHOT_TYPE = '$conn-ctrl-registry-snapshot';
const SNAPSHOTS_METADATA: StreamMetadata = { maxCount: 10 };
/** Ids that were ever used, deleted connectors included: they are never taken from the snapshot again. */
const CONNECTOR_IDS_MAX = 10_000;
/** Events of a connector read at once: each may hold its settings, with the script. */
const PAGE_EVENTS = 32;
const ABSENT: ReadonlySet<string> = new Set(['stream_not_found', 'stream_deleted']);

function connectorStream(connectorId: string): string {
  return `$connectors/${connectorId}`;
}

/** Changes a connector, again from reading on where others do so, too. Errors: `too_busy` when that goes on. */
export function changing<T>(attempt: () => Promise<T>): Promise<T> {
  return retryConflicts(
    attempt,
    (error) => new SkuaError('too_busy', 'The connector keeps being changed by others. Try again.', {}, error),
  );
}

export interface LoadedConnector {
  readonly record: ConnectorRecord | null;
  /** Number of the last event of the stream, which the next one expects. */
  readonly version: number;
}

export class ConnectorStreams {
  readonly #store: EventStore;
  readonly #ids: Ids;
  readonly #clock: Clock;
  #known: { readonly version: number; readonly ids: ReadonlySet<string> } = { version: -1, ids: new Set() };

  constructor(store: EventStore, ids: Ids, clock: Clock) {
    this.#store = store;
    this.#ids = ids;
    this.#clock = clock;
  }

  /** Number of the last event, -1 for none; null where it is not known without reading. */
  versionNow(connectorId: string): number | null {
    return this.#store.streamInfoNow?.(connectorStream(connectorId))?.lastEventNumber ?? null;
  }

  async version(connectorId: string): Promise<number> {
    return this.versionNow(connectorId) ?? (await this.#store.streamInfo(connectorStream(connectorId))).lastEventNumber;
  }

  /** Reads on from what was read before. */
  async read(connectorId: string, known: LoadedConnector): Promise<LoadedConnector> {
    const stream = connectorStream(connectorId);
    let { record, version } = known;
    try {
      for (let isEnd = false; !isEnd;) {
        const page = await this.#store.readStream(stream, {
          direction: 'forward',
          from: version + 1,
          count: PAGE_EVENTS,
        });
        for (const event of page.events) record = applyEvent(record, connectorId, event);
        isEnd = page.isEnd;
        version = isEnd ? page.lastEventNumber : page.nextEventNumber - 1;
      }
      return { record, version };
    } catch (error) {
      if (!isSkuaError(error) || !ABSENT.has(error.code)) throw error;
      return { record: null, version: (await this.#store.streamInfo(stream)).lastEventNumber };
    }
  }

  /** All at once. Errors: `wrong_expected_version`. */
  async append(connectorId: string, expected: number, ...events: readonly ConnectorEvent[]): Promise<void> {
    if (expected === TOMBSTONE)
      throw new SkuaError(
        'invalid_connector',
        `The stream of the connector ${connectorId} was hard-deleted: choose another id.`,
        { violations: [{ field: 'connectorId', description: 'Its stream was hard-deleted.' }] },
      );
    await this.#store.append(
      connectorStream(connectorId),
      expected,
      events.map(({ type, data, metadata }) => this.#event(type, eventBytes(data), eventBytes(metadata))),
    );
  }

  /** Every connector is among them; there may be ids without a connector. */
  async ids(): Promise<ReadonlySet<string>> {
    const { lastEventNumber } = await this.#store.streamInfo(SNAPSHOTS_STREAM);
    if (lastEventNumber !== this.#known.version) this.#known = await this.#readSnapshot(lastEventNumber);
    return this.#known.ids;
  }

  async #readSnapshot(last: number) {
    let events: readonly StoredEvent[] = [];
    let version = last;
    try {
      ({ events, lastEventNumber: version } = await this.#store.readStream(SNAPSHOTS_STREAM, {
        direction: 'backward',
        from: 'end',
        count: SNAPSHOTS_METADATA.maxCount!,
      }));
    } catch (error) {
      if (!isSkuaError(error) || !ABSENT.has(error.code)) throw error;
    }
    // The newest that we understand: others may have written there too.
    for (const event of events) {
      const ids = event.type === SNAPSHOT_TYPE ? objectOf(event.data)?.['connectorIds'] : null;
      if (Array.isArray(ids)) return { version, ids: new Set(ids.filter((id) => typeof id === 'string')) };
    }
    return { version, ids: new Set<string>() };
  }

  /** Before the first event of a connector. Errors: `invalid_connector` when there are too many. */
  async addId(connectorId: string): Promise<void> {
    await changing(async () => {
      const ids = await this.ids();
      if (ids.has(connectorId)) return;
      const { version } = this.#known;
      if (ids.size >= CONNECTOR_IDS_MAX) {
        throw new SkuaError(
          'invalid_connector',
          `There have been ${CONNECTOR_IDS_MAX} connectors: reuse the id of a deleted one.`,
          {
            violations: [
              {
                field: 'connectorId',
                description: `At most ${CONNECTOR_IDS_MAX} ids are allowed, including those of deleted connectors.`,
              },
            ],
          },
        );
      }
      if (version < 0) await this.#limitSnapshots();
      const data = { connectorIds: [...ids, connectorId], timestamp: timeText(this.#clock.nowMs()) };
      await this.#store.append(SNAPSHOTS_STREAM, version, [this.#event(SNAPSHOT_TYPE, eventBytes(data))]);
    });
  }

  async #limitSnapshots(): Promise<void> {
    const { metadataVersion } = await this.#store.streamInfo(SNAPSHOTS_STREAM);
    if (metadataVersion < 0) await this.#writeMetadata(SNAPSHOTS_STREAM, metadataVersion, SNAPSHOTS_METADATA);
  }

  /**
   * Hides what a deleted connector left: first what other streams hold of it, then its own events before the deletion,
   * whose truncation says that all was done. `version` is that of the deletion; once the connector has been
   * created again, nothing more happens.
   */
  async cleanUp(connectorId: string, version: number): Promise<void> {
    const stream = connectorStream(connectorId);
    const own = await this.#store.streamInfo(stream);
    if ((own.metadata.truncateBefore ?? 0) >= version) return;
    const others = [
      deliveriesStream(connectorId),
      rejectionsStream(connectorId),
      `${stream}/checkpoints`,
      `${stream}/leases`,
      `${stream}/lifecycle`,
    ];
    for (const other of others) {
      if (
        !(await this.#truncate(other, async (last) => ((await this.version(connectorId)) === version ? last + 1 : 0)))
      )
        return;
    }
    await this.#truncate(stream, async () => version);
  }

  /** `boundary` is asked after the stream's last number is known; 0 stops. Everything else in the metadata stays. */
  #truncate(stream: string, boundary: (last: number) => Promise<number>): Promise<boolean> {
    return changing(async () => {
      const { lastEventNumber, isTombstoned, metadata, metadataVersion } = await this.#store.streamInfo(stream);
      const before = await boundary(lastEventNumber);
      if (before === 0 && lastEventNumber >= 0) return false;
      if (!isTombstoned && before > 0 && (metadata.truncateBefore ?? 0) < before)
        await this.#writeMetadata(stream, metadataVersion, { ...metadata, truncateBefore: before });
      return true;
    });
  }

  async #writeMetadata(stream: string, expected: number, metadata: StreamMetadata): Promise<void> {
    await this.#store.append(metastreamOf(stream), expected, [
      this.#event(METADATA_TYPE, encodeText(formatMetadata(metadata))),
    ]);
  }

  #event(type: string, data: Uint8Array, metadata: Uint8Array = new Uint8Array(0)): NewEvent {
    return { id: guidToText(guidFromUuidBytes(this.#ids.uuidBytes()), 0), type, isJson: true, data, metadata };
  }
}
