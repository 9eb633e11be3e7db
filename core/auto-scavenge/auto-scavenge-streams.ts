import { isSkuaError } from '../base/errors.ts';
import { guidFromUuidBytes, guidToText } from '../base/guid.ts';
import type { Ids } from '../ports/ids.ts';
import { ANY } from '../streams/api.ts';
import type { Authorize, EventStore, StoredEvent } from '../streams/api.ts';
import { formatFact, parseFact } from './facts.ts';
import type { Fact } from './facts.ts';

/** The two streams of auto-scavenge. */

export const CONFIGURATION_STREAM = '$auto-scavenge-configuration';
export const CYCLES_STREAM = '$auto-scavenges';

const PAGE_EVENTS = 100;
/** Events of the cycle under way, and those of the last one, that are read at most. */
const READ_EVENTS_MAX = 20_000;
const NO_BYTES = new Uint8Array(0);
const ABSENT: ReadonlySet<string> = new Set(['stream_not_found', 'stream_deleted']);

export type CyclesStore = Pick<EventStore, 'append' | 'readStream' | 'streamInfo' | 'streamInfoNow'>;

/** Where both streams stand: numbers of their last events and of those of their metadata. */
export interface Stamp {
  readonly configuration: number;
  readonly configurationMetadata: number;
  readonly cycles: number;
  readonly cyclesMetadata: number;
}

export function isSameStamp(a: Stamp, b: Stamp): boolean {
  return (
    a.configuration === b.configuration &&
    a.cycles === b.cycles &&
    a.configurationMetadata === b.configurationMetadata &&
    a.cyclesMetadata === b.cyclesMetadata
  );
}

interface NumberedFact {
  readonly fact: Fact;
  readonly number: number;
}

export interface Loaded {
  readonly configuration: Fact | null;
  /** Of the last complete cycle and of all that came after it, oldest first. */
  readonly facts: readonly NumberedFact[];
  /** Number of the last event of the stream of cycles, understood or not; -1 for none. */
  readonly version: number;
}

export class AutoScavengeStreams {
  readonly #store: CyclesStore;
  readonly #ids: Ids;

  constructor(store: CyclesStore, ids: Ids) {
    this.#store = store;
    this.#ids = ids;
  }

  async stamp(): Promise<Stamp> {
    const configuration = await this.#info(CONFIGURATION_STREAM);
    const cycles = await this.#info(CYCLES_STREAM);
    return {
      configuration: configuration.lastEventNumber,
      configurationMetadata: configuration.metadataVersion,
      cycles: cycles.lastEventNumber,
      cyclesMetadata: cycles.metadataVersion,
    };
  }

  #info(stream: string) {
    return this.#store.streamInfoNow?.(stream) ?? this.#store.streamInfo(stream);
  }

  async load(): Promise<Loaded> {
    let configuration: Fact | null = null;
    for await (const { event } of this.#backwards(CONFIGURATION_STREAM)) {
      configuration = parseFact(event.type, event.data);
      if (configuration?.type === '$configuration-updated') break;
      configuration = null;
    }
    const facts: NumberedFact[] = [];
    let version = (await this.#info(CYCLES_STREAM)).lastEventNumber;
    let cyclesCompleted = 0;
    for await (const { event, last } of this.#backwards(CYCLES_STREAM)) {
      version = last;
      const fact = parseFact(event.type, event.data);
      if (fact === null) continue;
      if (fact.type === '$cluster-scavenge-completed' && ++cyclesCompleted > 1) break;
      facts.push({ fact, number: event.number });
      if (fact.type === '$cluster-scavenge-started' && cyclesCompleted > 0) break;
    }
    return { configuration, facts: facts.reverse(), version };
  }

  /** The events of a stream from its end, each with the number of the last one; none where there is no stream. */
  async *#backwards(
    stream: string,
  ): AsyncGenerator<{ readonly event: StoredEvent; readonly last: number }, void, undefined> {
    let from: number | 'end' = 'end';
    for (let read = 0; read < READ_EVENTS_MAX; read += PAGE_EVENTS) {
      let page;
      try {
        page = await this.#store.readStream(stream, { direction: 'backward', from, count: PAGE_EVENTS });
      } catch (error) {
        if (isSkuaError(error) && ABSENT.has(error.code)) return;
        throw error;
      }
      for (const event of page.events) yield { event, last: page.lastEventNumber };
      if (page.isEnd) return;
      from = page.nextEventNumber;
    }
  }

  /**
   * Stores a fact on top of what the stamp stands for, and gives the stamp after it; null when another writer has
   * configured in between. Errors: as `EventStore.append`; `wrong_expected_version` when another event was first, and
   * what `authorize` refuses with.
   */
  async append(fact: Fact, stamp: Stamp, authorize?: Authorize): Promise<Stamp | null> {
    const isConfiguration = fact.type === '$configuration-updated';
    const id = guidToText(guidFromUuidBytes(this.#ids.uuidBytes()), 0);
    const { lastEventNumber } = await this.#store.append(
      isConfiguration ? CONFIGURATION_STREAM : CYCLES_STREAM,
      isConfiguration ? ANY : stamp.cycles,
      [{ id, type: fact.type, isJson: true, data: formatFact(fact), metadata: NO_BYTES }],
      authorize,
    );
    if (!isConfiguration) return { ...stamp, cycles: lastEventNumber };
    return lastEventNumber === stamp.configuration + 1 ? { ...stamp, configuration: lastEventNumber } : null;
  }
}
