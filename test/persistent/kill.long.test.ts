import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  jsonEvent,
  KurrentDBClient,
  PARK,
  persistentSubscriptionToStreamSettingsFromDefaults,
  RETRY,
  START,
} from '@kurrent/kurrentdb-client';
import type { PersistentSubscriptionToStream } from '@kurrent/kurrentdb-client';
import { expect, test } from 'vitest';
import { startedProcess } from '../local/spawn.ts';
import type { Started } from '../local/spawn.ts';
import { Random } from '../support/random.ts';

const ROUNDS = 6;
const EVENTS_PER_ROUND = 60;
const CONSUMERS = 2;
/** After so many answers of a round the node is killed. */
const ANSWERS_MIN = 20;
const ANSWERS_MAX = 70;
/** What has not come after so long does not come any more. */
const GIVE_UP_MS = 1_200_000;

/** What consumers have answered, over all lives of the node. */
class Work {
  readonly random: Random;
  readonly ids: string[] = [];
  readonly acked = new Set<string>();
  readonly parked = new Set<string>();
  deliveries = 0;
  answers = 0;
  readonly #waiting: { readonly isDone: () => boolean; readonly resolve: () => void }[] = [];

  constructor(seed: number) {
    this.random = new Random(seed);
  }

  get missing(): string[] {
    return this.ids.filter((id) => !this.acked.has(id) && !this.parked.has(id));
  }

  until(isDone: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push({ isDone, resolve });
      this.#look();
    });
  }

  /** Answers what comes, in one way or another, until the connection is gone. */
  async consume(subscription: PersistentSubscriptionToStream): Promise<void> {
    try {
      for await (const { event } of subscription) {
        this.deliveries++;
        if (event === undefined) continue;
        const what = this.random.int(1, 20);
        // One that gets no answer comes again after its time, as does what was on its way when the node was killed.
        if (what === 1) continue;
        this.answers++;
        if (what === 2) await subscription.nack(RETRY, 'again', { event } as never);
        else if (what === 3) {
          await subscription.nack(PARK, 'not this one', { event } as never);
          this.parked.add(event.id);
        } else {
          await subscription.ack({ event } as never);
          this.acked.add(event.id);
        }
        this.#look();
      }
    } catch {
      // The node is gone.
    }
  }

  #look(): void {
    for (const { isDone, resolve } of this.#waiting) if (isDone()) resolve();
  }
}

test('a node that is killed again and again leaves out no event that was neither acked nor parked', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'skua-groups-'));
  const work = new Work(20);
  let running: Started | null = null;
  try {
    for (let round = 1; round <= ROUNDS; round++) {
      const node = (running = await startedProcess(['--db', folder]));
      const client = KurrentDBClient.connectionString(
        `kurrentdb://${new URL(node.url).host}?tls=false&defaultDeadline=600000&keepAliveTimeout=600000`,
      );
      if (round === 1) {
        await client.createPersistentSubscriptionToStream(
          'jobs',
          'workers',
          persistentSubscriptionToStreamSettingsFromDefaults({
            startFrom: START,
            messageTimeout: 1_000,
            checkPointAfter: 100,
            checkPointLowerBound: 5,
            checkPointUpperBound: 20,
            maxRetryCount: 50,
          }),
        );
      }
      const events = Array.from({ length: EVENTS_PER_ROUND }, () =>
        jsonEvent({ id: randomUUID(), type: 'job', data: { round } }),
      );
      await client.appendToStream('jobs', events);
      work.ids.push(...events.map(({ id }) => id));
      const consumers = Array.from({ length: CONSUMERS }, () =>
        work.consume(client.subscribeToPersistentSubscriptionToStream('jobs', 'workers', { bufferSize: 10 })),
      );
      const until = work.answers + work.random.int(ANSWERS_MIN, ANSWERS_MAX);
      const isOver = round === ROUNDS ? () => work.missing.length === 0 : () => work.answers >= until;
      await Promise.race([
        work.until(isOver),
        new Promise((resolve) => {
          setTimeout(resolve, GIVE_UP_MS).unref();
        }),
      ]);
      node.process.child.kill('SIGKILL');
      await node.process.ended;
      await Promise.all(consumers);
      void client.dispose();
    }
    expect(work.missing).toEqual([]);
    expect(work.deliveries).toBeGreaterThan(ROUNDS * EVENTS_PER_ROUND);
    expect(work.parked.size).toBeGreaterThan(0);
  } finally {
    running?.process.child.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  }
});
