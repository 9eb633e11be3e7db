import { JOBS } from '../../core/jobs/jobs.ts';
import { InlineJobs } from '../../core/memory/inline-jobs.ts';
import type { JobOptions, Jobs } from '../../core/ports/jobs.ts';
import type { Log } from '../../core/ports/log.ts';
import { MemoryScavengeStates } from '../../core/memory/memory-scavenge-state.ts';
import type { ScavengeCheckpoint } from '../../core/ports/scavenge-state.ts';
import type { Storage } from '../../core/ports/storage.ts';
import type { DirectoryStore } from '../../core/store/store.ts';
import type { ScavengeConfig } from '../../core/scavenge/api.ts';
import { ANY, type StoredEvent } from '../../core/streams/api.ts';
import { decodeText, encodeText } from '../../core/base/text.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { FaultyStorage } from '../support/faulty-storage.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { openTestStore, TEST_NOW_MS } from '../support/test-store.ts';

export const CHUNK_BYTES = 65_536;
const EVENT_BYTES = 4_000;
const STATE_OPTIONS = { pageSizeBytes: 16_384, cacheBytes: 1_048_576, hashUsersCacheEntries: 1_000 };

/** What happens when a job is about to run. Whatever it awaits delays the job. */
export type Hook = (name: string, args: Record<string, unknown>, nth: number) => void | Promise<void>;

/** Runs jobs as ever, after a look at each. */
export class HookedJobs implements Jobs {
  readonly #inner: Jobs;
  readonly ran: string[] = [];
  hook: Hook | null = null;

  constructor(inner: Jobs) {
    this.#inner = inner;
  }

  async run(name: string, args: unknown, options?: JobOptions): Promise<unknown> {
    if (name.startsWith('scavenge.')) {
      this.ran.push(name);
      await this.hook?.(name, args as Record<string, unknown>, this.ran.filter((other) => other === name).length);
    }
    return this.#inner.run(name, args, options);
  }

  close(): Promise<void> {
    return this.#inner.close();
  }
}

export interface World {
  readonly storage: FaultyStorage;
  readonly clock: ManualClock;
  readonly jobs: HookedJobs;
  readonly states: MemoryScavengeStates;
  readonly lines: { level: string; message: string; fields: Record<string, unknown> }[];
  open: DirectoryStore;
}

export interface WorldOptions {
  readonly storage?: FaultyStorage;
  readonly states?: MemoryScavengeStates;
  readonly scavenge?: Partial<ScavengeConfig>;
  readonly seed?: number;
  readonly nowMs?: number;
}

/** A node whose every part is in the test's hands. */
export async function openWorld(options: WorldOptions = {}): Promise<World> {
  const storage = options.storage ?? new FaultyStorage();
  const states = options.states ?? new MemoryScavengeStates();
  const clock = new ManualClock(options.nowMs ?? TEST_NOW_MS, 'microtask');
  const ids = new SeededIds(options.seed ?? 1);
  const jobs = new HookedJobs(
    new InlineJobs({ jobs: JOBS, storage, digests: nodeDigests, ids, clock, scavengeStates: states }),
  );
  const lines: World['lines'] = [];
  const line =
    (level: string) =>
    (message: string, fields: Record<string, unknown> = {}) => {
      lines.push({ level, message, fields });
    };
  const log: Log = { debug: line('debug'), info: line('info'), warn: line('warn'), error: line('error') };
  const open = await openTestStore({
    storage,
    clock,
    ids,
    jobs,
    log,
    scavengeStates: states,
    chunkSizeBytes: CHUNK_BYTES,
    memTableEntriesMax: 50,
    ...(options.scavenge && { scavenge: options.scavenge }),
  });
  return { storage, clock, jobs, states, lines, open };
}

let nextId = 0;
export async function append(
  open: DirectoryStore,
  stream: string,
  type: string,
  data: Uint8Array,
  isJson = false,
): Promise<number> {
  const id = `00000000-0000-4000-8000-${String(++nextId).padStart(12, '0')}`;
  return (await open.store.append(stream, ANY, [{ id, type, isJson, data, metadata: new Uint8Array(0) }]))
    .lastEventNumber;
}

export async function setMetadata(open: DirectoryStore, stream: string, metadata: object): Promise<void> {
  await append(open, `$$${stream}`, '$metadata', encodeText(JSON.stringify(metadata)), true);
}

/** Some chunks in which every other event is one of `doomed`, of which only the last stays. */
export async function fill(open: DirectoryStore, events = 80): Promise<void> {
  await setMetadata(open, 'doomed', { $maxCount: 1 });
  for (let i = 0; i < events; i++)
    await append(open, i % 2 === 0 ? 'doomed' : 'kept', 'thing', new Uint8Array(EVENT_BYTES).fill(i));
}

export async function runToEnd(world: World, options = {}): Promise<string> {
  const { scavengeId } = await world.open.scavenger.start(options);
  await world.open.scavenger.idle();
  return scavengeId;
}

export function checkpointOf(world: World): ScavengeCheckpoint | null {
  const state = world.states.open(STATE_OPTIONS);
  try {
    return state.checkpoint();
  } finally {
    state.close();
  }
}

/** All events of a stream; none where there is no stream. */
export async function eventsOf(open: DirectoryStore, stream: string): Promise<StoredEvent[]> {
  try {
    return (await open.store.readStream(stream, { direction: 'forward', from: 0, count: 1_000 })).events;
  } catch {
    return [];
  }
}

export function jsonOf(event: StoredEvent): Record<string, unknown> {
  return JSON.parse(decodeText(event.data)) as Record<string, unknown>;
}

/** The history of a run: `type` and members. */
export async function historyOf(
  open: DirectoryStore,
  scavengeId: string,
): Promise<{ type: string; members: Record<string, unknown> }[]> {
  return (await eventsOf(open, `$scavenges-${scavengeId}`)).map((event) => ({
    type: event.type,
    members: jsonOf(event),
  }));
}

/** Position, stream and number of every event of `$all` below a position, but those of the history itself. */
export async function recordsBelow(open: DirectoryStore, position: number): Promise<string[]> {
  const out: string[] = [];
  for (let from: { commit: number; prepare: number } | 'start' = 'start'; ;) {
    const page = await open.store.readAll({ direction: 'forward', from, count: 1_000 });
    for (const event of page.events) {
      if (event.preparePosition < position && !event.stream.includes('$scavenge'))
        out.push(`${event.preparePosition} ${event.stream} ${event.number}`);
    }
    if (page.isEnd) return out;
    from = page.next;
  }
}

/** Files that a run makes for itself and must not leave. */
export async function leftovers(storage: Storage): Promise<string[]> {
  return (await storage.list('')).filter((name) => name.endsWith('.tmp'));
}
