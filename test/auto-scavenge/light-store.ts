import type { CyclesStore } from '../../core/auto-scavenge/auto-scavenge-streams.ts';
import { SkuaError } from '../../core/base/errors.ts';
import { ANY } from '../../core/streams/api.ts';
import type {
  AppendResult,
  Authorize,
  NewEvent,
  ReadStreamOptions,
  StoredEvent,
  StreamInfo,
  StreamPage,
} from '../../core/streams/api.ts';

/** The log of a cluster: one list of events a stream, nothing else. */
export class LightLog {
  readonly streams = new Map<string, StoredEvent[]>();
  position = 0;

  of(stream: string): readonly StoredEvent[] {
    return this.streams.get(stream) ?? [];
  }

  append(stream: string, expected: number, events: readonly NewEvent[], createdMs: number): AppendResult {
    const stored = this.streams.get(stream) ?? [];
    if (expected !== ANY && expected !== stored.length - 1)
      throw new SkuaError('wrong_expected_version', `${stream} is at ${stored.length - 1}.`, {
        stream,
        expected,
        actual: stored.length - 1,
      });
    this.streams.set(stream, stored);
    for (const { id, type, isJson, data, metadata } of events) {
      const position = this.position++;
      stored.push({
        stream,
        number: stored.length,
        type,
        id,
        isJson,
        isRedacted: false,
        data,
        metadata,
        position,
        preparePosition: position,
        createdMs,
        createdTicks: 0,
        link: null,
        linkTargetMissing: false,
      });
    }
    const last = stored.length - 1;
    return {
      firstEventNumber: last - events.length + 1,
      lastEventNumber: last,
      position: this.position - 1,
      isRepeat: false,
    };
  }
}

export interface LightStoreHooks {
  /** Called before an append; may throw what refuses it. */
  readonly before?: (stream: string, events: readonly NewEvent[]) => void;
  /** Called after it; may throw although it was stored. */
  readonly after?: (stream: string, events: readonly NewEvent[]) => void;
  /** How far this copy of the log has come; events at or behind it are not seen. */
  readonly seenTo?: () => number;
  readonly nowMs?: () => number;
}

/** A node's store over a log that others may share. */
export class LightStore implements CyclesStore {
  readonly log: LightLog;
  readonly #hooks: LightStoreHooks;

  constructor(log: LightLog, hooks: LightStoreHooks = {}) {
    this.log = log;
    this.#hooks = hooks;
  }

  async append(
    stream: string,
    expected: number,
    events: readonly NewEvent[],
    authorize?: Authorize,
  ): Promise<AppendResult> {
    this.#hooks.before?.(stream, events);
    const refusal = authorize?.({}, () => null) ?? null;
    if (refusal !== null) throw refusal;
    const result = this.log.append(stream, expected, events, this.#hooks.nowMs?.() ?? 0);
    this.#hooks.after?.(stream, events);
    return result;
  }

  #events(stream: string): readonly StoredEvent[] {
    const events = this.log.of(stream);
    const to = this.#hooks.seenTo?.() ?? this.log.position;
    return events.length === 0 || events.at(-1)!.position < to ? events : events.filter((event) => event.position < to);
  }

  async readStream(stream: string, { direction, from, count }: ReadStreamOptions): Promise<StreamPage> {
    const events = this.#events(stream);
    const last = events.length - 1;
    if (last < 0) throw new SkuaError('stream_not_found', `There is no stream ${stream}.`, { stream });
    const start = from === 'end' ? last : from;
    const page =
      direction === 'forward'
        ? events.slice(start, start + count)
        : events.slice(Math.max(0, start - count + 1), start + 1).toReversed();
    const next = direction === 'forward' ? start + page.length : start - count;
    return {
      stream,
      events: page,
      from: start,
      lastEventNumber: last,
      nextEventNumber: direction === 'forward' ? next : Math.max(-1, next),
      isEnd: direction === 'forward' ? next > last : next < 0,
      isCut: false,
      metadata: {},
    };
  }

  streamInfoNow(stream: string): StreamInfo {
    return {
      lastEventNumber: this.#events(stream).length - 1,
      isTombstoned: false,
      isSoftDeleted: false,
      metadata: {},
      metadataVersion: -1,
    };
  }

  async streamInfo(stream: string): Promise<StreamInfo> {
    return this.streamInfoNow(stream);
  }
}
