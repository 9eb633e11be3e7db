import {
  AppendConditionError,
  buildDecisionModel,
  type DcbEvent,
  type EventStore,
  MemoryEventStore,
  Query,
  SequencePosition,
  streamAllEventsToArray,
  Tags,
} from '@dcb-es/event-store';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

/** What the interface of `@dcb-es/event-store` promises, asked of any store that has it. */

export interface OpenedDcb {
  readonly store: EventStore;
  close(): Promise<void>;
}

const event = (type: string, tags: Record<string, string> | null, data: unknown = {}): DcbEvent => ({
  type,
  tags: tags === null ? Tags.createEmpty() : Tags.fromObj(tags),
  data,
  metadata: { by: 'ann' },
});
const joined = (course: string, student: string): DcbEvent => event('joined', { course, student }, { seat: 1 });
const asks = (types: string[], tags: Record<string, string>): Query =>
  Query.fromItems([{ types, tags: Tags.fromObj(tags) }]);
const FULL = 2;

/** A course of two seats, and a student in one course at most. */
async function join(store: EventStore, course: string, student: string): Promise<string> {
  for (;;) {
    const { state, appendCondition } = await buildDecisionModel(store, {
      taken: { tagFilter: Tags.fromObj({ course }), init: 0, when: { joined: (_: unknown, n: number) => n + 1 } },
      courses: { tagFilter: Tags.fromObj({ student }), init: 0, when: { joined: (_: unknown, n: number) => n + 1 } },
    });
    if (state.taken >= FULL || state.courses > 0) return 'refused';
    try {
      await store.append({ events: joined(course, student), condition: appendCondition });
      return 'joined';
    } catch (error) {
      if (!(error instanceof AppendConditionError)) throw error;
    }
  }
}

export function describeDcbStore(name: string, open: () => Promise<OpenedDcb>): void {
  describe(name, () => {
    let opened: OpenedDcb;
    let store: EventStore;
    beforeEach(async () => {
      opened = await open();
      ({ store } = opened);
    });
    afterEach(() => opened.close());

    const read = async (query: Query, options?: Parameters<EventStore['read']>[1]): Promise<string[]> =>
      (await streamAllEventsToArray(store.read(query, options))).map(
        ({ event: { type, tags } }) => `${type} ${tags.values.join(' ')}`,
      );

    test('reads what was appended, in both directions, by types, tags and place', async () => {
      expect(await read(Query.all())).toEqual([]);
      const first = await store.append({ events: [joined('a', '1'), joined('a', '2')] });
      const second = await store.append({ events: event('left', { course: 'a' }) });
      await store.append({ events: event('noted', null) });
      const [a1, a2, left, noted] = [
        'joined course=a student=1',
        'joined course=a student=2',
        'left course=a',
        'noted ',
      ];
      expect(await read(Query.all())).toEqual([a1, a2, left, noted]);
      expect(await read(Query.all(), { backwards: true, limit: 2 })).toEqual([noted, left]);
      expect(await read(asks(['joined'], { student: '2' }))).toEqual([a2]);
      const several = Query.fromItems([
        { types: ['left', 'noted'] },
        { types: ['joined'], tags: Tags.from(['student=1']) },
      ]);
      expect(await read(several)).toEqual([a1, left, noted]);
      expect(await read(Query.all(), { after: first })).toEqual([left, noted]);
      expect(await read(Query.all(), { after: first, limit: 1 })).toEqual([left]);
      expect(await read(Query.all(), { after: second, backwards: true })).toEqual([a2, a1]);
      expect(await read(Query.all(), { after: SequencePosition.initial() })).toEqual([a1, a2, left, noted]);
      expect(await read(Query.all(), { after: SequencePosition.initial(), backwards: true })).toEqual([]);
      const [one, two, three] = await streamAllEventsToArray(store.read(Query.all()));
      expect(one!.event).toMatchObject({ data: { seat: 1 }, metadata: { by: 'ann' } });
      expect(one!.position.isAfter(SequencePosition.initial())).toBe(true);
      expect(two!.position.isAfter(one!.position)).toBe(true);
      expect(two!.position.equals(first)).toBe(true);
      expect(three!.position.equals(second)).toBe(true);
    });

    test('appends on a condition, whatever others do meanwhile', async () => {
      const outcomes = await Promise.all(['1', '2', '3', '4', '1'].map((student) => join(store, 'a', student)));
      expect(outcomes.toSorted()).toEqual(['joined', 'joined', 'refused', 'refused', 'refused']);
      expect(await read(asks(['joined'], { course: 'a' }))).toHaveLength(FULL);
      const failIfEventsMatch = asks(['joined'], { course: 'a' });
      const condition = { failIfEventsMatch, after: SequencePosition.initial() };
      const refused = store.append({ events: joined('a', '9'), condition });
      await expect(refused).rejects.toBeInstanceOf(AppendConditionError);
      await expect(refused).rejects.toMatchObject({ appendCondition: condition });
      await expect(store.append({ events: joined('b', '9'), condition: { failIfEventsMatch } })).rejects.toThrow();
      const last = (await streamAllEventsToArray(store.read(failIfEventsMatch))).at(-1)!.position;
      await store.append({ events: joined('b', '9'), condition: { failIfEventsMatch, after: last } });
      expect(await read(Query.all())).toHaveLength(FULL + 1);
    });

    test('appends several commands as one, or none of them, and says which condition failed', async () => {
      const start = await store.append({ events: joined('a', '1') });
      const later = await store.append({ events: joined('b', '2') });
      const on = (course: string, after?: SequencePosition) => ({
        failIfEventsMatch: asks(['joined'], { course }),
        ...(after !== undefined && { after }),
      });
      const command = (course: string, after?: SequencePosition) => ({
        events: joined(course, '7'),
        condition: on(course, after),
      });
      // Each counts from a place of its own.
      await store.append([command('a', start), command('b', later)]);
      expect(await read(asks(['joined'], { student: '7' }))).toEqual([
        'joined course=a student=7',
        'joined course=b student=7',
      ]);
      const wrong = async (...commands: ReturnType<typeof command>[]): Promise<unknown> =>
        store.append(commands).then(
          () => 'written',
          (error: unknown) => (error instanceof AppendConditionError ? error.commandIndex : error),
        );
      expect(await wrong(command('c'), command('a', start))).toBe(1);
      expect(await wrong(command('b', start), command('c', later))).toBe(0);
      expect(await wrong(command('b', start), command('a'))).toBe(0);
      expect(await read(asks(['joined'], { course: 'c' }))).toEqual([]);
      expect(await read(Query.all())).toHaveLength(4);
    });

    test('refuses conditions and appends that ask for nothing', async () => {
      const anything = { failIfEventsMatch: Query.all() };
      await expect(store.append({ events: joined('a', '1'), condition: anything })).rejects.toThrow('scoped');
      const untagged = { failIfEventsMatch: Query.fromItems([{ types: ['joined'] }]) };
      await expect(store.append({ events: joined('a', '1'), condition: untagged })).rejects.toThrow('one tag');
      await expect(store.append({ events: [] })).rejects.toThrow();
      await expect(store.append([])).rejects.toThrow();
    });

    test('follows what was there and what comes, until it is told to stop', async () => {
      const first = await store.append({ events: joined('a', '1') });
      await store.append({ events: [joined('b', '1'), joined('a', '2')] });
      const follow = async (after: SequencePosition | undefined, count: number, next: () => Promise<unknown>) => {
        const ending = new AbortController();
        const seen: string[] = [];
        const options = { signal: ending.signal, ...(after !== undefined && { after }) };
        for await (const one of store.subscribe(asks(['joined'], { course: 'a' }), options)) {
          seen.push(one.event.tags.values.join(' '));
          if (seen.length === count - 1) void next();
          if (seen.length === count) ending.abort();
        }
        return seen;
      };
      expect(await follow(undefined, 3, () => store.append({ events: joined('a', '3') }))).toEqual([
        'course=a student=1',
        'course=a student=2',
        'course=a student=3',
      ]);
      expect(await follow(first, 3, () => store.append({ events: joined('a', '4') }))).toEqual([
        'course=a student=2',
        'course=a student=3',
        'course=a student=4',
      ]);
    });
  });
}

/** The library's own store, by which the suite is judged. */
export async function openTheirs(): Promise<OpenedDcb> {
  return { store: new MemoryEventStore(), close: async () => {} };
}
