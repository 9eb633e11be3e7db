import {
  type AppendCommand,
  AppendConditionError,
  type DcbEvent,
  type EventStore as DcbEventStore,
  type Query,
  SequencePosition,
  type SequencedEvent,
  Tags,
  validateAppendCondition,
} from '@dcb-es/event-store';
import type { ConditionQuery, Position, RecordedEvent, TaggedEvent } from '../event-store/api.ts';
import { isRecord } from '../event-store/values.ts';
import type { DcbEventStoreOptions, DcbSource } from './api.ts';

type Items = ConditionQuery['items'];

/** The condition of one of the commands that are appended together. */
interface Condition {
  readonly of: NonNullable<AppendCommand['condition']>;
  readonly command: number;
  readonly items: Items;
  /** Sequence position behind which events count: 0 for all. */
  readonly after: number;
}

/**
 * The event store of `@dcb-es/event-store` over a store of this package. Nothing is opened, and nothing has to be
 * closed.
 *
 * A sequence position is one more than the position of the event in the log: they rise with gaps, and the initial one
 * stands before all events. Tags are kept as `$tags` in the metadata, which have to be an object. A tag with white
 * space, which the library knows no word for, is left out when an event is read.
 *
 * Commands that are appended together are one write: all conditions are compared with what was there before. Together
 * these have at most 32 different items, else `append` rejects with `bad_option`. Methods reject with
 * `AppendConditionError` where one fails, and else with the errors of the store: `index_off` until the index of tags is
 * switched on, `index_building` until it has caught up.
 */
export function getDcbEventStore(store: DcbSource, options: DcbEventStoreOptions = {}): DcbEventStore {
  return {
    append: (command) => append(store, options, Array.isArray(command) ? command : [command]),

    async *read(query, { backwards = false, after, limit } = {}) {
      const position = numberOf(after);
      if (backwards && after !== undefined && position === 0) return;
      const from = after === undefined ? undefined : backwards ? atEvent(position) : { commit: position, prepare: 0 };
      const events = store.readAll({
        items: itemsOf(query),
        direction: backwards ? 'backward' : 'forward',
        ...(from !== undefined && { from }),
        ...(limit !== undefined && limit > 0 && { limit }),
      });
      for await (const event of events) yield sequenced(event);
    },

    async *subscribe(query, { after, signal } = {}) {
      const position = numberOf(after);
      const events = store.subscribe({
        items: itemsOf(query),
        after: position === 0 ? 'start' : atEvent(position),
        ...(signal !== undefined && { signal }),
      });
      for await (const event of events) yield sequenced(event);
    },
  };
}

async function append(
  store: DcbSource,
  { streamOf }: DcbEventStoreOptions,
  commands: readonly AppendCommand[],
): Promise<SequencePosition> {
  const events = commands.flatMap((command) => (Array.isArray(command.events) ? command.events : [command.events]));
  if (events.length === 0) throw new Error('There are no events to append: give one or more.');
  const conditions = commands.flatMap(({ condition }, command) =>
    condition === undefined ? [] : [conditionOf(condition, command)],
  );
  const after = Math.max(0, ...conditions.map((condition) => condition.after));
  // What came up to there is history, so that it can be looked at before; what comes behind is decided by the store.
  for (const condition of conditions)
    if (condition.after < after && (await hasMatch(store, condition, after)))
      throw await failure(store, conditions, commands);
  try {
    const { position } = await store.append(
      events.map((event) => outgoing(event, streamOf)),
      conditions.length === 0
        ? {}
        : {
            condition: {
              failIfEventsMatch: { items: anyOf(conditions) },
              ...(after > 0 && { after: atEvent(after) }),
            },
          },
    );
    return sequencePosition(position);
  } catch (error) {
    if ((error as { readonly code?: unknown }).code !== 'condition_failed') throw error;
    throw await failure(store, conditions, commands);
  }
}

function conditionOf(condition: NonNullable<AppendCommand['condition']>, command: number): Condition {
  validateAppendCondition(condition);
  const { failIfEventsMatch, after } = condition;
  return { of: condition, command, items: itemsOf(failIfEventsMatch), after: numberOf(after) };
}

/** What any of them asks for, each item once: a query has at most 32. */
function anyOf(conditions: readonly Condition[]): Items {
  return [...new Map(conditions.flatMap(({ items }) => items).map((item) => [JSON.stringify(item), item])).values()];
}

/** Whether an event between what the condition counts from and a later position matches. */
async function hasMatch(store: DcbSource, { items, after }: Condition, to: number): Promise<boolean> {
  for await (const { position } of store.readAll({ items, from: { commit: after, prepare: 0 }, limit: 1 }))
    return position.commit < to;
  return false;
}

/** Names the first command whose condition has a match by now; if that is hidden since, the first with a condition. */
async function failure(
  store: DcbSource,
  conditions: readonly Condition[],
  commands: readonly AppendCommand[],
): Promise<AppendConditionError> {
  if (commands.length === 1) return new AppendConditionError(conditions[0]!.of);
  for (const condition of conditions)
    if (await hasMatch(store, condition, Infinity)) return new AppendConditionError(condition.of, condition.command);
  return new AppendConditionError(conditions[0]!.of, conditions[0]!.command);
}

function itemsOf(query: Query): Items {
  return query.isAll ? [] : query.items.map(({ types, tags }) => ({ types, tags: tags?.values ?? [] }));
}

function outgoing(event: DcbEvent, streamOf: DcbEventStoreOptions['streamOf']): TaggedEvent {
  const { type, tags, data, metadata } = event;
  return { type, tags: tags.values, data, metadata, ...(streamOf !== undefined && { stream: streamOf(event) }) };
}

function sequenced(event: RecordedEvent): SequencedEvent {
  const { $tags: _, ...metadata } = isRecord(event.metadata) ? event.metadata : {};
  const tags = Tags.from(tagsOf(event).filter((tag) => /^\S+$/.test(tag)));
  return { event: { type: event.type, tags, data: event.data, metadata }, position: sequencePosition(event.position) };
}

function tagsOf({ metadata }: RecordedEvent): readonly string[] {
  const tags = isRecord(metadata) ? metadata['$tags'] : [];
  return Array.isArray(tags) ? tags.filter((tag) => typeof tag === 'string') : [];
}

function sequencePosition({ commit }: Position): SequencePosition {
  return SequencePosition.fromString(String(commit + 1));
}

function numberOf(position: SequencePosition | undefined): number {
  return position === undefined ? 0 : Number(position.toString());
}

/** The event that has this sequence position. */
function atEvent(position: number): Position {
  return { commit: position - 1, prepare: position - 1 };
}
