import { AUDIT_STREAM, AUDIT_TYPE_PREFIX, auditLine, ownEntry } from '../../ports/audit.ts';
import type { AuditEntry } from '../../ports/audit.ts';
import { guidFromUuidBytes, guidToText } from '../../base/guid.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Ids } from '../../ports/ids.ts';
import { ANY, NO_STREAM } from '../../streams/api.ts';
import type { EventStore, NewEvent } from '../../streams/api.ts';
import { formatMetadata } from '../../streams/format/metadata.ts';
import { METADATA_TYPE, metastreamOf } from '../../streams/format/names.ts';
import { encodeText } from '../../base/text.ts';
import { isSkuaError } from '../../base/errors.ts';
import { ADMINISTRATORS } from '../../base/principal.ts';

/** Bytes of entries that wait to be appended; what comes beyond is lost. */
export const AUDIT_QUEUE_BYTES_MAX = 1_048_576;
/** Entries of one append. */
const BATCH_EVENTS_MAX = 256;
/** What a stream that the node begins is bounded by; an administrator may set something else, and that stays. */
const MAX_AGE_SECONDS = 7_776_000;
const MAX_COUNT = 1_000_000;
const NO_BYTES = new Uint8Array(0);

interface AuditStreamParts {
  readonly store: Pick<EventStore, 'append' | 'streamInfo'>;
  readonly clock: Clock;
  readonly ids: Ids;
  /**
   * Called with the number of entries that were appended, and of those that are lost, with the reason where it is an
   * error.
   */
  readonly onWritten: (entries: number) => void;
  readonly onLost: (entries: number, error: unknown) => void;
}

/** The audit as a stream that administrators read: an event an entry, whose type is `$audit.` and the action. */
export class AuditStream {
  readonly #parts: AuditStreamParts;
  readonly #waiting: NewEvent[] = [];
  #waitingBytes = 0;
  /** Entries since the last append that are lost. */
  #lost = 0;
  #isPrepared = false;
  #writing: Promise<void> | null = null;

  constructor(parts: AuditStreamParts) {
    this.#parts = parts;
  }

  /** Never throws, and is not waited for. */
  add(entry: AuditEntry, line: string): void {
    const event = this.#event(entry.action, line);
    if (this.#waitingBytes + event.data.length > AUDIT_QUEUE_BYTES_MAX) {
      this.#lost++;
      this.#parts.onLost(1, null);
      return;
    }
    this.#waiting.push(event);
    this.#waitingBytes += event.data.length;
    this.#writing ??= this.#write().finally(() => {
      this.#writing = null;
    });
  }

  /** Resolves when all that waits was appended, or is lost. */
  async settled(): Promise<void> {
    await this.#writing;
  }

  /** Never rejects. */
  async #write(): Promise<void> {
    const { store, clock, onWritten, onLost } = this.#parts;
    while (this.#waiting.length > 0) {
      const events = this.#waiting.splice(0, BATCH_EVENTS_MAX);
      for (const { data } of events) this.#waitingBytes -= data.length;
      const entries = events.length;
      const lost = this.#lost;
      if (lost > 0)
        events.unshift(
          this.#event('audit.lost', auditLine(ownEntry('audit.lost', { details: { entries: lost } }), clock.nowMs())),
        );
      try {
        await this.#prepare();
        await store.append(AUDIT_STREAM, ANY, events);
        this.#lost -= lost;
        onWritten(entries);
      } catch (error) {
        this.#lost += entries;
        onLost(entries, error);
      }
    }
  }

  /** Once, and never over what a user has set. */
  async #prepare(): Promise<void> {
    if (this.#isPrepared) return;
    const { store, ids } = this.#parts;
    if ((await store.streamInfo(AUDIT_STREAM)).metadataVersion < 0) {
      const only = [ADMINISTRATORS];
      const metadata = formatMetadata({
        maxAge: MAX_AGE_SECONDS,
        maxCount: MAX_COUNT,
        acl: { read: only, write: only, delete: only, metadataRead: only, metadataWrite: only },
      });
      const id = guidToText(guidFromUuidBytes(ids.uuidBytes()), 0);
      await store
        .append(metastreamOf(AUDIT_STREAM), NO_STREAM, [
          { id, type: METADATA_TYPE, isJson: true, data: encodeText(metadata), metadata: NO_BYTES },
        ])
        .catch((error: unknown) => {
          if (!isSkuaError(error, 'wrong_expected_version')) throw error;
        });
    }
    this.#isPrepared = true;
  }

  #event(action: string, line: string): NewEvent {
    return {
      id: guidToText(guidFromUuidBytes(this.#parts.ids.uuidBytes()), 0),
      type: `${AUDIT_TYPE_PREFIX}${action}`,
      isJson: true,
      data: encodeText(line),
      metadata: NO_BYTES,
    };
  }
}
