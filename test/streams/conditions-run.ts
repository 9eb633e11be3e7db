import { isSkuaError } from '../../core/base/errors.ts';
import { encodeText } from '../../core/base/text.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { ANY, type AppendCondition, type EventStore, type NewEvent } from '../../core/streams/api.ts';
import { newEvent, openIndexed, randomId, set } from '../attributes/world.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { Random } from '../support/random.ts';
import { TEST_NOW_MS } from '../support/test-store.ts';
import { modelOf, randomCondition } from './conditions-model.ts';

/** What a seed came to: what was wrong, and how often which outcome came. */
export interface ConditionsOutcome {
  readonly problems: readonly string[];
  readonly counts: Readonly<Record<string, number>>;
}

/** The stores of one log, whichever of them decides. */
export interface ConditionsWorld {
  readonly rounds: number;
  readonly requestsMax: number;
  /** One that decides the next request. */
  store(): EventStore;
  /** One that has seen all that was committed. */
  newest(): Promise<EventStore>;
  /** Between rounds: openings, ticks, whatever may not change an answer. */
  between(round: number): Promise<void>;
}

interface Asked {
  readonly condition: AppendCondition;
  readonly event: NewEvent;
  readonly stream: string;
}

/** Metadata of a stream that hide its older events, or show them again. */
export function rulesEvent(random: Random): NewEvent {
  const rules = random.pick([{ $tb: random.int(0, 20) }, { $maxCount: random.int(1, 6) }, {}]);
  return {
    id: randomId(),
    type: '$metadata',
    isJson: true,
    data: encodeText(JSON.stringify(rules)),
    metadata: new Uint8Array(0),
  };
}

/** Rounds of random appends on conditions, all of a round at once, and repeats of older ones, judged by the model. */
export async function playConditions(random: Random, world: ConditionsWorld): Promise<ConditionsOutcome> {
  const problems: string[] = [];
  const counts = { written: 0, refused: 0, repeats: 0, writtenAgain: 0 };
  const written: Asked[] = [];
  let model = await modelOf(await world.newest());
  const judge = (asked: Asked, isAgain: boolean, from: number, outcome: PromiseSettledResult<AppendAnswer>): void => {
    const { condition, event } = asked;
    const to = model.end;
    // Its own event is the oldest match as long as nothing older has come into sight again: it is known by that.
    const isKnown = isAgain && model.isMatchThroughout(condition, event.id, from, to);
    const wrong = (why: string): void => {
      problems.push(`${why}: ${event.id}, ${JSON.stringify(condition)}`);
    };
    if (outcome.status === 'fulfilled') {
      const { position, isRepeat } = outcome.value;
      counts[isRepeat ? 'repeats' : isAgain ? 'writtenAgain' : 'written']++;
      if (isRepeat && !isAgain) wrong('taken for a repeat');
      if (!isRepeat && isKnown) wrong('written again');
      if (isRepeat) return;
      const violation = model.violation(condition, position);
      if (violation !== null) wrong(`written at ${position}, though ${violation} matches`);
      if (!isAgain) written.push(asked);
      return;
    }
    if (!isSkuaError(outcome.reason, 'condition_failed')) {
      wrong(String(outcome.reason));
      return;
    }
    counts.refused++;
    const position = Number(outcome.reason.data['position']);
    const refusal = model.wrongRefusal(condition, position, from, to);
    if (refusal !== null) wrong(`refused, and ${refusal}`);
    if (isKnown && position >= model.positionOf(event.id)!) wrong('a repeat is refused');
  };
  for (let round = 0; round < world.rounds && problems.length === 0; round++) {
    const after = random.int(0, 2) === 0 ? undefined : model.positionBefore(random);
    const asked = Array.from({ length: random.int(1, world.requestsMax) }, (): Asked => {
      const tags = Array.from({ length: random.int(0, 3) }, () => `t${random.int(0, 4)}`);
      return {
        condition: randomCondition(random, after),
        event: newEvent(`type-${random.int(0, 3)}`, { $tags: tags }),
        stream: `s-${random.int(0, 3)}`,
      };
    });
    const again = written.length > 0 && random.chance(0.3) ? [random.pick(written)] : [];
    const from = model.end;
    const rules = random.chance(0.25)
      ? world.store().append(`$$s-${random.int(0, 3)}`, ANY, [rulesEvent(random)])
      : null;
    const all = [...asked, ...again];
    const outcomes = await Promise.allSettled(all.map((each) => append(world.store(), each)));
    await rules;
    model = await modelOf(await world.newest());
    for (const [i, outcome] of outcomes.entries()) judge(all[i]!, i >= asked.length, from, outcome);
    await world.between(round);
  }
  return { problems, counts };
}

interface AppendAnswer {
  readonly position: number;
  readonly isRepeat: boolean;
}

async function append(store: EventStore, { condition, event, stream }: Asked): Promise<AppendAnswer> {
  const { streams, isRepeat } = await store.appendToStreams([{ stream, expectedVersion: ANY, events: [event] }], {
    condition,
  });
  return { position: streams[0]!.position, isRepeat };
}

/** Conditions at a store over a directory, which is opened anew now and then, and forgets all ids with that. */
export async function simulateConditions(seed: number): Promise<ConditionsOutcome> {
  const random = new Random(seed);
  const storage = new MemoryStorage();
  const options = { storage, attributes: { memTableEntriesMax: 64 }, recentIds: random.pick([4, 4, 1_024]) };
  let open = await openIndexed({ ...options, seed, clock: new ManualClock(TEST_NOW_MS, 'microtask') });
  await set(open.store, { tags: true });
  await open.attributes!.idle();
  const outcome = await playConditions(random, {
    rounds: 12,
    requestsMax: 12,
    store: () => open.store,
    newest: async () => open.store,
    between: async (round) => {
      if (!random.chance(0.2)) return;
      await open.close();
      open = await openIndexed({ ...options, seed: seed * 100 + round });
    },
  });
  await open.close();
  return outcome;
}
