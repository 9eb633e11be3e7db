import { ANY } from '../../../core/streams/api.ts';
import { systemClock } from '../../../infra/system-clock.ts';
import { openObjects } from '../../../infra/objects/open-objects.ts';
import { s3ForTests } from '../../support/s3/s3-for-tests.ts';
import { row } from '../figure.ts';
import type { Figure } from '../figure.ts';
import { events, openCounted } from '../object-stores.ts';
import type { CountedInstance } from '../object-stores.ts';

const WRITERS = 4;
const PER_SECOND = 20;
const MEAN_MAX = 2.5;
const WORST_MAX = 30;

interface Result {
  readonly appends: number;
  readonly attempts: number;
  readonly worst: number;
  readonly meanMs: number;
}

export const objectContention: Figure = {
  name: 'object-contention',
  how: `${WRITERS} instances on one log on a local S3 server, in one process with a client each; every one appends ${PER_SECOND} single events a second to a stream of its own, one after the other, for ten windows. Attempts are conditional writes; that of a window counts for all instances.`,
  async run(settings) {
    const s3 = await s3ForTests();
    const instances: CountedInstance[] = [];
    try {
      for (let i = 0; i < WRITERS; i++) instances.push(await openCounted(await openObjects(s3.place('contention'))));
      const ms = settings.windowMs * 10;
      const results = await Promise.all(instances.map((instance, i) => write(instance, i, ms)));
      const appends = sum(results.map((result) => result.appends));
      const attempts = sum(results.map((result) => result.attempts));
      const rates = results.map((result) => (result.appends / ms) * 1_000);
      const note = `${appends} appends; ${results.map(({ appends: count, meanMs }) => `${count} of ${meanMs.toFixed(0)} ms`).join(', ')}; the server is ${s3.kind}`;
      return [
        row(
          '4 writers on one log: attempts an append, mean',
          'attempts',
          { limit: [1], ours: [attempts / appends] },
          { kind: 'at most', value: MEAN_MAX },
          [note],
        ),
        row(
          '4 writers on one log: attempts an append, worst',
          'attempts',
          { limit: [1], ours: [Math.max(...results.map(({ worst }) => worst))] },
          { kind: 'at most', value: WORST_MAX },
        ),
        row(
          '4 writers on one log: slowest beside fastest',
          'appends/s',
          { limit: [Math.max(...rates)], ours: [Math.min(...rates)] },
          { kind: 'at least', value: 0.5 },
        ),
      ];
    } finally {
      for (const instance of instances) await instance.close();
      await s3.close();
    }
  },
};

async function write({ store, counting }: CountedInstance, number: number, ms: number): Promise<Result> {
  let appends = 0;
  let attempts = 0;
  let worst = 0;
  let busyMs = 0;
  const begin = systemClock.monotonicMs();
  for (let due = begin; due < begin + ms; due += 1_000 / PER_SECOND) {
    await systemClock.sleep(Math.max(0, due - systemClock.monotonicMs()));
    if (systemClock.monotonicMs() >= begin + ms) break;
    counting.reset();
    const started = systemClock.monotonicMs();
    await store.append(`writer-${number}`, ANY, events(1, 200));
    busyMs += systemClock.monotonicMs() - started;
    const { puts } = counting.counts();
    appends++;
    attempts += puts;
    worst = Math.max(worst, puts);
  }
  return { appends, attempts, worst, meanMs: busyMs / Math.max(1, appends) };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
