import { existsSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { ANY } from '../../../core/streams/api.ts';
import type { AppendCondition, EventStore, NewEvent } from '../../../core/streams/api.ts';
import { changeSetting } from '../../../core/streams/change-setting/change-setting.ts';
import { systemIds } from '../../../infra/system-ids.ts';
import { newEvent } from '../events.ts';
import { alternate, row } from '../figure.ts';
import type { Figure, Settings } from '../figure.ts';
import { openFolder } from '../open-folder.ts';

const CLIENTS = 64;
const LOG_SHARE = 5;
const BATCH = 1_000;
const BATCHES_IN_FLIGHT = 16;
/** Each event has a tag of each. */
const COURSES = 1_000;
const STUDENTS = 100_000;
const NEWEST = 100_000;
/** What each look at the latency appends. */
const DECISIONS = 2_000;
const NEWEST_RATIO = 0.7;
const LATENCY_MS = 5;

const METADATA: readonly Uint8Array[] = Array.from({ length: STUDENTS }, (_, n) =>
  new TextEncoder().encode(JSON.stringify({ $tags: [`course:${n % COURSES}`, `student:${n}`] })),
);

function tagged(index: number): NewEvent {
  return { ...newEvent(index), metadata: METADATA[index % STUDENTS]! };
}

/** Written once a run, with its indexes, and closed. */
async function taggedLog(settings: Settings): Promise<{ folder: string; events: number }> {
  const folder = join(settings.folder, 'conditions');
  const batches = Math.max(1, Math.floor((settings.logEvents * LOG_SHARE) / BATCH));
  const events = batches * BATCH;
  if (existsSync(`${folder}.complete`)) return { folder, events };
  settings.say(`  building a log of ${events} events ...`);
  await rm(folder, { recursive: true, force: true });
  const open = await openFolder(folder);
  await changeSetting(open.store, systemIds, { tags: true });
  let batch = 0;
  const writer = async (): Promise<void> => {
    while (batch < batches) {
      const n = batch++;
      await open.store.append(
        `room-${n % COURSES}`,
        ANY,
        Array.from({ length: BATCH }, (_, i) => tagged(n * BATCH + i)),
      );
    }
  };
  await Promise.all(Array.from({ length: BATCHES_IN_FLIGHT }, writer));
  await open.attributes!.idle();
  await open.close();
  await writeFile(`${folder}.complete`, '');
  return { folder, events };
}

/** Appends one event; gives its position. */
async function decide(store: EventStore, index: number, condition?: AppendCondition): Promise<number> {
  const { position } = await store.appendToStreams(
    [{ stream: `decision-${index % CLIENTS}`, expectedVersion: ANY, events: [tagged(index)] }],
    { condition },
  );
  return position;
}

function none(tags: readonly string[], after = -1): AppendCondition {
  return { failIfEventsMatch: { items: [{ tags }] }, after };
}

/** A tag that few events have, spread over all of them, and one that many have; none has both. */
function rareAndFrequent(index: number, after?: number): AppendCondition {
  const student = (index * 7_919) % STUDENTS;
  return none([`student:${student}`, `course:${(student + 1) % COURSES}`], after);
}

function bothFrequent(index: number): AppendCondition {
  return none([`course:${index % COURSES}`, `course:${(index + 1) % COURSES}`]);
}

export const conditions: Figure = {
  name: 'conditions',
  isLong: true,
  how: `A log of ${LOG_SHARE} M events of 256 bytes with a tag out of ${STUDENTS} and one out of ${COURSES} each. ${CLIENTS} clients in the process of the store append one event each and go on: on the condition that none of the newest ${NEWEST} events has one of each that no event has together; the limit is the same without the condition. Then one client does so without \`after\`: for such a pair, for two tags of the ${COURSES}, which many events have and none both, and for a tag that no event has; of these the 99th percentile is told, and the limit is a number.`,
  async run(settings) {
    const { folder, events } = await taggedLog(settings);
    const open = await openFolder(folder);
    await open.attributes!.idle();
    const { store } = open;
    /** Of each event that was appended here, so that the newest ones are known. */
    const positions: number[] = [];
    let index = 0;
    const window = async (isConditional: boolean): Promise<number> => {
      const begunMs = performance.now();
      const first = positions.length;
      const client = async (): Promise<void> => {
        while (performance.now() - begunMs < settings.windowMs) {
          const after = positions[positions.length - newest]!;
          const at = index++;
          positions.push(await decide(store, at, isConditional ? rareAndFrequent(at, after) : undefined));
        }
      };
      await Promise.all(Array.from({ length: CLIENTS }, client));
      return ((positions.length - first) / (performance.now() - begunMs)) * 1_000;
    };
    const latency = async (condition: () => AppendCondition): Promise<number> => {
      const seen: number[] = [];
      for (let i = 0; i < (settings.isSmoke ? 20 : DECISIONS); i++) {
        const begunMs = performance.now();
        await decide(store, index++, condition());
        seen.push(performance.now() - begunMs);
      }
      return seen.toSorted((a, b) => a - b)[Math.floor(seen.length * 0.99)]!;
    };
    const newest = Math.min(NEWEST, events);
    try {
      for (let n = 0; n < newest; n += BATCH) {
        const all = Array.from({ length: BATCH }, (_, i) => tagged(n + i));
        const { position } = await store.append('newest', ANY, all);
        positions.push(...all.map(() => position));
      }
      await window(false);
      await window(true);
      const rates = await alternate(
        settings.windows,
        () => window(false),
        () => window(true),
      );
      const over = { kind: 'below', value: 1 } as const;
      const rows = [];
      for (const [title, condition, target] of [
        ['a rare tag and a frequent one, none both', () => rareAndFrequent(index), over],
        ['two frequent tags, none both', () => bothFrequent(index), null],
        ['a tag that none has', () => none(['course:none']), over],
      ] as const) {
        const measure = () => latency(condition);
        await measure();
        rows.push(
          row(
            `append on a condition over ${LOG_SHARE} M events, ${title}: p99`,
            'ms',
            await alternate(settings.windows, () => LATENCY_MS, measure),
            target,
          ),
        );
      }
      return [
        row(
          `append on a condition over the newest ${NEWEST} events, ${CLIENTS} clients, beside no condition`,
          'events/s',
          rates,
          { kind: 'at least', value: NEWEST_RATIO },
        ),
        ...rows,
      ];
    } finally {
      await open.close();
    }
  },
};
