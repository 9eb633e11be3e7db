import { expect, test } from 'vitest';
import { ANY, NO_STREAM } from '../../core/streams/api.ts';
import { MARKS_STREAM } from '../../core/streams/format/marks.ts';
import { markEvent } from '../../core/streams/redact/redact.ts';
import { MARKS_MAX } from '../../core/streams/redactions/redactions.ts';
import { event as rawEvent } from '../scavenge/chunk-kit.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { codeOf, event, setUp, type Setup } from './setup.ts';

/** How many marks there may be, and what many of them do to those who wait. */

const ids = new SeededIds(3);
const marks = (count: number) =>
  Array.from({ length: count }, (_, number) =>
    markEvent(ids, {
      stream: 's',
      number,
      id: `22000000-0000-4000-8000-${String(number).padStart(12, '0')}`,
      position: 1_000_000 + number,
      by: 'ann',
      reason: 'r',
      keys: [],
    }),
  );

/** The stream of marks ends with an event of this number. */
function endingWith(last: number): Setup {
  const world = setUp();
  const { log, index } = world;
  const position = log.end;
  log.appendRaw(rawEvent({ stream: MARKS_STREAM, number: last, position }));
  index.addEvent(MARKS_STREAM, last, position);
  return world;
}

test('the limit holds in the turn of a request, whatever comes at once', async () => {
  const { store } = endingWith(MARKS_MAX - 4);
  await store.append('s', NO_STREAM, [event()]);
  const [repeated, ...others] = marks(5);
  // Two of them fit, and the third is refused, though each would have fitted alone.
  const results = await Promise.all([
    codeOf(store.append(MARKS_STREAM, ANY, [repeated!, others[0]!])),
    codeOf(store.append(MARKS_STREAM, ANY, others.slice(1, 3))),
    codeOf(
      store.appendToStreams([
        { stream: 's', expectedVersion: 0, events: [event()] },
        { stream: MARKS_STREAM, expectedVersion: ANY, events: others.slice(1, 3) },
      ]),
    ),
    codeOf(store.append(MARKS_STREAM, ANY, others.slice(3))),
  ]);
  expect(results).toEqual(['ok', 'redactions_full', 'redactions_full', 'ok']);
  expect((await store.streamInfo(MARKS_STREAM)).lastEventNumber).toBe(MARKS_MAX - 1);
  expect((await store.streamInfo('s')).lastEventNumber).toBe(0);
  expect(await codeOf(store.append(MARKS_STREAM, ANY, marks(1)))).toBe('redactions_full');
  expect(await codeOf(store.append(MARKS_STREAM, ANY, [repeated!, others[0]!]))).toBe('ok');
  expect(await codeOf(store.append('s', ANY, [event()]))).toBe('ok');
  await store.close();
});

test('an opening with many marks lets others have their turns', async () => {
  const first = setUp();
  for (let at = 0; at < 4; at++) await first.store.append(MARKS_STREAM, ANY, marks(1_000));
  await first.store.close();
  const { store, clock } = setUp({ from: first });
  let turns = 0;
  const yielded = clock.yield.bind(clock);
  clock.yield = () => {
    turns++;
    return yielded();
  };
  await store.loadMarks();
  expect(store.redactions.count).toBe(1_000);
  expect(turns).toBe(3);
  await store.close();
});
