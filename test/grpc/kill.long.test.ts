import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ANY, binaryEvent, KurrentDBClient, StreamNotFoundError } from '@kurrent/kurrentdb-client';
import { expect, test } from 'vitest';
import { startedProcess } from '../local/spawn.ts';
import type { Started } from '../local/spawn.ts';
import { Random } from '../support/random.ts';
import { bySize } from '../support/run-size.ts';

const ROUNDS = bySize(4, 4, 8);
const WRITERS = 4;
const STREAMS = ['stock', 'orders', 'invoices', 'parcels', 'ledger'];
/** Of one transaction in one stream, and the bytes of each: some take several writes, and chunks are soon full. */
const EVENTS_MAX = 3;
const SMALL_BYTES = 200;
const LARGE_BYTES = 60_000;
const CHUNK_BYTES = 1_048_576;
/** After so many answers of a round, and then so many milliseconds, the node is killed. */
const ANSWERS_MIN = 5;
const ANSWERS_MAX = 60;
const DELAY_MS_MAX = 6;

/** A write to several streams: the ids of its events, in each. */
interface Transaction {
  readonly parts: ReadonlyMap<string, readonly string[]>;
  readonly bytes: number;
  isAcknowledged: boolean;
}

/** What was written, over all lives of the node. */
class Work {
  readonly random: Random;
  readonly transactions: Transaction[] = [];
  /** Whose answer was not there when the node was killed: those that were committed, and those that were not. */
  readonly inDoubt = { kept: 0, lost: 0 };
  answers = 0;
  /** What fails before is the fault of the node. */
  isKilled = false;
  readonly failures: unknown[] = [];

  constructor(seed: number) {
    this.random = new Random(seed);
  }

  next(): Transaction {
    const { random } = this;
    const streams = STREAMS.filter(() => random.int(0, 1) === 1);
    while (streams.length < 2) streams.push(STREAMS.find((name) => !streams.includes(name))!);
    const transaction: Transaction = {
      parts: new Map(
        streams.map((stream) => [stream, Array.from({ length: random.int(1, EVENTS_MAX) }, () => randomUUID())]),
      ),
      bytes: random.int(1, 5) === 1 ? LARGE_BYTES : SMALL_BYTES,
      isAcknowledged: false,
    };
    this.transactions.push(transaction);
    return transaction;
  }

  /** Problems with what is in the streams, each told in a line. */
  judge(found: ReadonlyMap<string, readonly string[]>): string[] {
    const problems: string[] = [];
    const places = new Map([...found].map(([stream, ids]) => [stream, new Map(ids.map((id, number) => [id, number]))]));
    let events = 0;
    for (const [n, { parts, isAcknowledged }] of this.transactions.entries()) {
      const whole = [...parts].filter(([stream, ids]) => {
        const first = places.get(stream)!.get(ids[0]!);
        return first !== undefined && ids.every((id, i) => places.get(stream)!.get(id) === first + i);
      });
      const none = [...parts].filter(([stream, ids]) => ids.every((id) => !places.get(stream)!.has(id)));
      if (whole.length === parts.size) events += [...parts.values()].flat().length;
      else if (none.length !== parts.size)
        problems.push(`transaction ${n} is in ${whole.length} of its ${parts.size} streams`);
      if (isAcknowledged && none.length > 0) problems.push(`transaction ${n} was acknowledged, and is not there`);
      if (!isAcknowledged) this.inDoubt[none.length === 0 ? 'kept' : 'lost']++;
    }
    const all = [...found.values()].flat().length;
    if (problems.length === 0 && events !== all) problems.push(`${all} events are there instead of ${events}`);
    return problems;
  }
}

async function append(client: KurrentDBClient, transaction: Transaction): Promise<void> {
  const data = Buffer.alloc(transaction.bytes, 0x61);
  await client.multiStreamAppend(
    [...transaction.parts].map(([streamName, ids]) => ({
      streamName,
      expectedState: ANY,
      events: ids.map((id) => binaryEvent({ id, type: 'moved', data })),
    })),
  );
  transaction.isAcknowledged = true;
}

/** One transaction after the other, until the node is gone. */
async function write(client: KurrentDBClient, work: Work, answered: () => void): Promise<void> {
  try {
    for (;;) {
      await append(client, work.next());
      work.answers++;
      answered();
    }
  } catch (error) {
    if (!work.isKilled) work.failures.push(error);
  }
}

async function idsOf(client: KurrentDBClient, stream: string): Promise<string[]> {
  const ids: string[] = [];
  try {
    for await (const { event } of client.readStream(stream)) ids.push(event!.id);
  } catch (error) {
    if (!(error instanceof StreamNotFoundError)) throw error;
  }
  return ids;
}

test('a write to several streams is in all of them or in none after the node was killed, again and again, and in all if it was acknowledged', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'skua-streams-'));
  const work = new Work(21);
  let running: Started | null = null;
  try {
    for (let round = 0; round <= ROUNDS; round++) {
      const node = (running = await startedProcess(['--db', folder, '--chunk-size', String(CHUNK_BYTES)]));
      const client = KurrentDBClient.connectionString(
        `kurrentdb://${new URL(node.url).host}?tls=false&defaultDeadline=600000&keepAliveTimeout=600000`,
      );
      expect(
        work.judge(
          new Map(await Promise.all(STREAMS.map(async (stream) => [stream, await idsOf(client, stream)] as const))),
        ),
        `after life ${round}`,
      ).toEqual([]);
      // Whoever has no answer asks again with the same ids: what is there is not written twice.
      for (const transaction of work.transactions) if (!transaction.isAcknowledged) await append(client, transaction);
      if (round < ROUNDS) {
        work.isKilled = false;
        const until = work.answers + work.random.int(ANSWERS_MIN, ANSWERS_MAX);
        const delayMs = work.random.int(0, DELAY_MS_MAX);
        const enough = Promise.withResolvers<void>();
        const writers = Array.from({ length: WRITERS }, () =>
          write(client, work, () => {
            if (work.answers >= until) enough.resolve();
          }),
        );
        await Promise.race([enough.promise, Promise.all(writers)]);
        await sleep(delayMs);
        work.isKilled = true;
        node.process.child.kill('SIGKILL');
        await node.process.ended;
        await Promise.all(writers);
        expect(work.failures).toEqual([]);
      } else {
        expect(
          work.judge(
            new Map(await Promise.all(STREAMS.map(async (stream) => [stream, await idsOf(client, stream)] as const))),
          ),
          'after the last repeats',
        ).toEqual([]);
        expect(work.transactions.filter(({ isAcknowledged }) => !isAcknowledged)).toEqual([]);
      }
      void client.dispose();
    }
    console.log(`${work.transactions.length} transactions, in doubt: ${JSON.stringify(work.inDoubt)}`);
    expect(work.answers).toBeGreaterThan(ROUNDS * ANSWERS_MIN);
    expect(work.inDoubt.kept + work.inDoubt.lost).toBeGreaterThan(0);
  } finally {
    running?.process.child.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  }
});
