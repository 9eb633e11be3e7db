import { decodeText } from '../../core/base/text.ts';
import { TOMBSTONE } from '../../core/log/format/records.ts';
import type { AppendCondition, ConditionItem, EventStore, StoredEvent } from '../../core/streams/api.ts';
import type { Random } from '../support/random.ts';

/** What conditions ask of an event, and what hides it. */
export interface ModelEvent {
  readonly id: string;
  readonly position: number;
  readonly stream: string;
  /** TOMBSTONE for the event that deletes its stream for ever. */
  readonly number: number;
  readonly type: string;
  readonly tags: readonly string[];
  /** Of the metadata of a stream; null for any other event. */
  readonly rules: ModelRules | null;
}
export interface ModelRules {
  readonly $tb?: number;
  readonly $maxCount?: number;
}

export function randomCondition(random: Random, after: number | undefined): AppendCondition {
  const items = Array.from({ length: random.int(1, 2) }, (): ConditionItem => {
    const types = random.int(0, 1) === 0 ? [] : [`type-${random.int(0, 3)}`, `type-${random.int(0, 3)}`];
    const tags = random.int(0, 3) === 0 && types.length > 0 ? [] : [`t${random.int(0, 4)}`];
    return { types, tags };
  });
  return { failIfEventsMatch: { items }, ...(after !== undefined && { after }) };
}

function fits({ failIfEventsMatch: { items } }: AppendCondition, { stream, number, type, tags }: ModelEvent): boolean {
  if (stream.startsWith('$') || number === TOMBSTONE) return false;
  return items.some(
    (item) =>
      (item.types === undefined || item.types.length === 0 || item.types.includes(type)) &&
      (item.tags ?? []).every((tag) => tags.includes(tag)),
  );
}

/**
 * All events of a log, and what conditions come to by looking at each of them: no index, no search. The events must be
 * all that were ever written, hidden or not.
 */
export class ConditionsModel {
  readonly #events: ModelEvent[] = [];
  readonly #byId = new Map<string, ModelEvent>();
  readonly #streams = new Map<string, ModelEvent[]>();
  /** Position of an event that may be gone from some copy: it counts, or it does not. */
  readonly #mayBeGone: (position: number) => boolean;

  constructor(mayBeGone: (position: number) => boolean = () => false) {
    this.#mayBeGone = mayBeGone;
  }

  /** In the order of the log. */
  add(event: ModelEvent): void {
    this.#events.push(event);
    this.#byId.set(event.id, event);
    const events = this.#streams.get(event.stream);
    if (events === undefined) this.#streams.set(event.stream, [event]);
    else events.push(event);
  }

  /** Behind the last event. */
  get end(): number {
    return (this.#events.at(-1)?.position ?? -1) + 1;
  }

  positionOf(id: string): number | undefined {
    return this.#byId.get(id)?.position;
  }

  /** One of the last positions. */
  positionBefore(random: Random): number | undefined {
    const { length } = this.#events;
    return length === 0 ? undefined : this.#events[random.int(Math.max(0, length - 30), length - 1)]!.position;
  }

  /** Whether readers saw the event when the log ended at this position. */
  #isVisible(event: ModelEvent, end: number): boolean {
    if (event.position >= end) return false;
    const last = lastBefore(this.#streams.get(event.stream), end)?.number ?? -1;
    if (last === TOMBSTONE) return false;
    const { $tb = 0, $maxCount = Infinity } = lastBefore(this.#streams.get(`$$${event.stream}`), end)?.rules ?? {};
    return event.number >= $tb && event.number > last - $maxCount;
  }

  #matches(condition: AppendCondition): readonly ModelEvent[] {
    const { after = -1 } = condition;
    return this.#events.filter((event) => event.position > after && fits(condition, event));
  }

  /** Position of an event that was visible when the write at `position` came, and should have stopped it; else null. */
  violation(condition: AppendCondition, position: number): number | null {
    const counts = (event: ModelEvent): boolean => this.#isVisible(event, position) && !this.#mayBeGone(event.position);
    return this.#matches(condition).find(counts)?.position ?? null;
  }

  /** Ends of the log, as it grew from one to the other. */
  #ends(from: number, to: number): readonly number[] {
    return [from, ...this.#events.map((event) => event.position).filter((at) => at > from && at < to), to];
  }

  #isVisibleThroughout(event: ModelEvent, ends: readonly number[]): boolean {
    return ends.every((end) => this.#isVisible(event, end)) && !this.#mayBeGone(event.position);
  }

  /** Whether the event matches, and readers saw it all the time while the log grew from `from` to `to`. */
  isMatchThroughout(condition: AppendCondition, id: string, from: number, to: number): boolean {
    const event = this.#matches(condition).find((one) => one.id === id);
    return event !== undefined && this.#isVisibleThroughout(event, this.#ends(from, to));
  }

  /**
   * What is wrong with a refusal that named the event at `position`, and was decided while the log grew from `from` to
   * `to`; else null: the event matches, was visible at some time, and no older one was visible all the time.
   */
  wrongRefusal(condition: AppendCondition, position: number, from: number, to: number): string | null {
    const matches = this.#matches(condition);
    const named = matches.find((event) => event.position === position);
    if (named === undefined) return `no event at ${position} matches`;
    const ends = this.#ends(from, to);
    if (!ends.some((end) => this.#isVisible(named, end))) return `the event at ${position} was hidden all the time`;
    const older = matches.find((event) => event.position < position && this.#isVisibleThroughout(event, ends));
    return older === undefined ? null : `the event at ${older.position} is older than that at ${position}`;
  }
}

function lastBefore(events: readonly ModelEvent[] | undefined, end: number): ModelEvent | undefined {
  return events?.findLast(({ position }) => position < end);
}

function modelEventOf({ id, position, stream, number, type, metadata, data }: StoredEvent): ModelEvent {
  const { $tags = [] } = metadata.length === 0 ? {} : (JSON.parse(decodeText(metadata)) as { $tags?: string[] });
  const rules = stream.startsWith('$$') ? (JSON.parse(decodeText(data)) as ModelRules) : null;
  return { id, position, stream, number, type, tags: $tags, rules };
}

/** The model of a store from which nothing has been scavenged. */
export async function modelOf(store: EventStore): Promise<ConditionsModel> {
  const model = new ConditionsModel();
  let from: Parameters<EventStore['readAll']>[0]['from'] = 'start';
  for (;;) {
    const page = await store.readAll({ from, direction: 'forward', count: 1_000 });
    for (const event of page.events) model.add(modelEventOf(event));
    if (page.isEnd) return model;
    from = page.next;
  }
}
