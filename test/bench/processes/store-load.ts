import { performance } from 'node:perf_hooks';
import { createInterface } from 'node:readline';
import { ANY } from '../../../core/streams/api.ts';
import { changeSetting } from '../../../core/streams/change-setting/change-setting.ts';
import { systemIds } from '../../../infra/system-ids.ts';
import { newEvents } from '../events.ts';
import { openFolder } from '../open-folder.ts';

/**
 * Appends in the process of the store, whose folder is the argument: what the same appends cost without a network. A
 * second argument, `no-names`, switches the index of categories and types off.
 */
export interface StoreLoadRequest {
  /** Appends under way at a time, each of so many events to a stream of its own. */
  readonly inFlight: number;
  readonly batch: number;
  readonly ms: number;
}
export interface StoreLoadResult {
  readonly events: number;
  /** Processor time of all threads. */
  readonly cpuMs: number;
}

const { store, close } = await openFolder(process.argv[2]!);
if (process.argv[3] === 'no-names') await changeSetting(store, systemIds, { names: false });

async function load({ inFlight, batch, ms }: StoreLoadRequest): Promise<StoreLoadResult> {
  const before = process.cpuUsage();
  const until = performance.now() + ms;
  let events = 0;
  await Promise.all(
    Array.from({ length: inFlight }, async (_, i) => {
      do {
        await store.append(`bench-store-${i}`, ANY, newEvents(batch));
        events += batch;
      } while (performance.now() < until);
    }),
  );
  const { user, system } = process.cpuUsage(before);
  return { events, cpuMs: (user + system) / 1_000 };
}

for await (const line of createInterface({ input: process.stdin }))
  process.stdout.write(`${JSON.stringify(await load(JSON.parse(line) as StoreLoadRequest))}\n`);
await close();
