import { describe, expect, it } from 'vitest';
import { collidingHasher } from '../support/colliding-hasher.ts';
import { ANY, NO_STREAM, STREAM_EXISTS } from '../../core/streams/api.ts';
import type { EventStoreInternals } from '../../core/streams/streams.ts';
import { event, events, outcomeOf, setMetadata, setUp } from './setup.ts';

/** The states a stream can be in; those with events have 0 to 2. */
const STATES: Record<string, (store: EventStoreInternals) => Promise<void>> = {
  absent: async () => {},
  'metadata only': async (store) => {
    await setMetadata(store, 's', '{"$maxCount":9}');
  },
  events: async (store) => {
    await store.append('s', ANY, events(3));
  },
  'soft-deleted': async (store) => {
    await store.append('s', ANY, events(3));
    await store.deleteStream('s', ANY, 'soft');
  },
  'soft-deleted without events': async (store) => {
    await setMetadata(store, 's', '{"$maxCount":9}');
    await store.deleteStream('s', ANY, 'soft');
  },
  tombstoned: async (store) => {
    await store.append('s', ANY, events(3));
    await store.deleteStream('s', ANY, 'hard');
  },
};

const EXPECTED = { any: ANY, 'no stream': NO_STREAM, exists: STREAM_EXISTS, matching: 2, lower: 1, higher: 3 };
type Row = Record<keyof typeof EXPECTED, string>;
const all = (outcome: string): Row => ({
  any: outcome,
  'no stream': outcome,
  exists: outcome,
  matching: outcome,
  lower: outcome,
  higher: outcome,
});
const absentActual = { exists: 'conflict -1', matching: 'conflict -1', lower: 'conflict -1', higher: 'conflict -1' };

const APPEND: Record<string, Row> = {
  absent: { any: 'ok', 'no stream': 'ok', ...absentActual },
  'metadata only': { any: 'ok', 'no stream': 'ok', ...absentActual, exists: 'ok' },
  events: {
    any: 'ok',
    'no stream': 'conflict 2',
    exists: 'ok',
    matching: 'ok',
    lower: 'conflict 2',
    higher: 'conflict 2',
  },
  'soft-deleted': {
    any: 'ok',
    'no stream': 'ok',
    exists: 'stream_deleted',
    matching: 'ok',
    lower: 'conflict 2',
    higher: 'conflict 2',
  },
  'soft-deleted without events': { any: 'ok', 'no stream': 'ok', ...absentActual, exists: 'stream_deleted' },
  tombstoned: all('stream_deleted'),
};

const SOFT: Record<string, Row> = {
  absent: all('conflict -1'),
  'metadata only': { ...all('conflict -1'), any: 'ok', 'no stream': 'ok', exists: 'ok' },
  events: APPEND['events']!,
  'soft-deleted': APPEND['soft-deleted']!,
  'soft-deleted without events': APPEND['soft-deleted without events']!,
  tombstoned: all('stream_deleted'),
};

const HARD: Record<string, Row> = {
  ...SOFT,
  absent: { any: 'ok', 'no stream': 'ok', ...absentActual },
};

const CALLS: Record<string, [Record<string, Row>, (store: EventStoreInternals, expected: number) => Promise<unknown>]> =
  {
    append: [APPEND, (store, expected) => store.append('s', expected, [event()])],
    'soft delete': [SOFT, (store, expected) => store.deleteStream('s', expected, 'soft')],
    'hard delete': [HARD, (store, expected) => store.deleteStream('s', expected, 'hard')],
  };

const cells = Object.entries(CALLS).flatMap(([call, [table]]) =>
  Object.entries(table).flatMap(([state, row]) =>
    Object.entries(row).map(([expected, outcome]) => [call, state, expected, outcome] as const),
  ),
);

describe.each([
  ['warm', {}],
  ['cold, with colliding hashes', { hasher: collidingHasher, misses: 0.3 }],
] as const)('expected versions, %s', (_, options) => {
  it.each(cells)('%s to a stream %s, expecting %s: %s', async (call, state, expected, outcome) => {
    const first = setUp(options);
    await first.store.append('other', ANY, events(5));
    await STATES[state]!(first.store);
    const version = EXPECTED[expected as keyof Row];
    // Once more on a store that has to find everything out again.
    const { store } = setUp({ ...options, from: first });
    expect(await outcomeOf(CALLS[call]![1](store, version))).toBe(outcome);
  });
});

describe('expected versions of a metastream', () => {
  it('go by the metastream itself', async () => {
    const { store } = setUp();
    const metadata = () => event('{}', { isJson: true });
    expect(await outcomeOf(store.append('$$s', STREAM_EXISTS, [metadata()]))).toBe('conflict -1');
    expect(await outcomeOf(store.append('$$s', NO_STREAM, [metadata()]))).toBe('ok');
    expect(await outcomeOf(store.append('$$s', STREAM_EXISTS, [metadata()]))).toBe('ok');
    expect(await outcomeOf(store.append('$$s', 0, [metadata()]))).toBe('conflict 1');
    await store.deleteStream('s', ANY, 'hard');
    expect(await outcomeOf(store.append('$$s', ANY, [metadata()]))).toBe('stream_deleted');
    expect(await outcomeOf(store.readStream('$$s', { direction: 'forward', from: 0, count: 1 }))).toBe(
      'stream_deleted',
    );
  });
});
