import { existsSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ANY } from '../../../core/streams/api.ts';
import type { AllPosition, EventStore } from '../../../core/streams/api.ts';
import { newEvents } from '../events.ts';
import { alternate, row } from '../figure.ts';
import type { Figure, Settings } from '../figure.ts';
import { openFolder } from '../open-folder.ts';

/** Of a hundred events one is in streams of the category, and one in a stream alone. */
const ROUND_EVENTS = 100;
const LOG_SHARE = 5;
const ROUNDS_IN_FLIGHT = 16;
const CATEGORY_STREAMS = 50;
const OTHER_STREAMS = 997;
const ALONE = 'alone';
const CATEGORY = 'rare';
const PAGE = 500;

/** Written once a run, with its indexes, and closed. */
async function categoryLog(settings: Settings): Promise<{ folder: string; events: number }> {
  const folder = join(settings.folder, 'categories');
  const rounds = Math.floor((settings.logEvents * LOG_SHARE) / ROUND_EVENTS);
  const events = rounds * ROUND_EVENTS;
  if (existsSync(`${folder}.complete`)) return { folder, events };
  settings.say(`  building a log of ${events} events ...`);
  await rm(folder, { recursive: true, force: true });
  const open = await openFolder(folder);
  let round = 0;
  const writer = async (): Promise<void> => {
    while (round < rounds) {
      const n = round++;
      await Promise.all([
        open.store.append(`other-${n % OTHER_STREAMS}`, ANY, newEvents(ROUND_EVENTS - 2)),
        open.store.append(`${CATEGORY}-${n % CATEGORY_STREAMS}`, ANY, newEvents(1)),
        open.store.append(ALONE, ANY, newEvents(1)),
      ]);
    }
  };
  await Promise.all(Array.from({ length: ROUNDS_IN_FLIGHT }, writer));
  await open.attributes!.idle();
  await open.close();
  await writeFile(`${folder}.complete`, '');
  return { folder, events };
}

async function readCategory(store: EventStore): Promise<number> {
  const filter = { on: 'stream', query: { category: CATEGORY } } as const;
  let events = 0;
  for (let from: AllPosition | 'start' = 'start'; ;) {
    const page = await store.readAll({ direction: 'forward', from, count: PAGE, filter });
    events += page.events.length;
    if (page.isEnd) return events;
    from = page.next;
  }
}

async function readAlone(store: EventStore): Promise<number> {
  let events = 0;
  for (let from = 0; ;) {
    const page = await store.readStream(ALONE, { direction: 'forward', from, count: PAGE });
    events += page.events.length;
    if (page.isEnd) return events;
    from = page.nextEventNumber;
  }
}

/** Events for each second of processor time of all threads. */
async function rateOf(read: () => Promise<number>): Promise<number> {
  const before = process.cpuUsage();
  const events = await read();
  const { user, system } = process.cpuUsage(before);
  return (events / (user + system)) * 1e6;
}

export const categories: Figure = {
  name: 'categories',
  isLong: true,
  how: `A log of ${LOG_SHARE} M events of 256 bytes: of a hundred, one is in one of ${CATEGORY_STREAMS} streams of a category, and one in a stream alone. That category is read by its index in pages of ${PAGE}; the limit is the same of the stream. Then the directory is opened without \`attributes\`, until the index of names is up to date; the limit is the opening without \`index\`. Both are rates by processor time, of all threads.`,
  async run(settings) {
    const { folder, events } = await categoryLog(settings);
    let open = await openFolder(folder);
    await open.attributes!.idle();
    const { store } = open;
    const read = () => rateOf(() => readCategory(store));
    const alone = () => rateOf(() => readAlone(store));
    await alone();
    await read();
    const reading = await alternate(settings.windows, alone, read);
    await open.close();

    const rebuild = async (): Promise<number> => {
      await rm(join(folder, 'index'), { recursive: true, force: true });
      const rate = await rateOf(async () => {
        open = await openFolder(folder);
        return events;
      });
      await open.attributes!.idle();
      await open.close();
      return rate;
    };
    const build = async (): Promise<number> => {
      await rm(join(folder, 'attributes'), { recursive: true, force: true });
      open = await openFolder(folder);
      const rate = await rateOf(async () => {
        await open.attributes!.idle();
        return events;
      });
      await open.close();
      return rate;
    };
    await rebuild();
    await build();
    return [
      row('reading a category of 1 %, beside a stream whose events lie as far apart', 'events/s', reading, {
        kind: 'at least',
        value: 0.5,
      }),
      row(
        'the index of names, built in the background, beside an index rebuild',
        'events/s',
        await alternate(settings.windows, rebuild, build),
        { kind: 'at least', value: 0.7 },
      ),
    ];
  },
};
