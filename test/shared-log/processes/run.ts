import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { isSkuaError } from '../../../core/base/errors.ts';
import type { ObjectInstance } from '../../../core/shared-log/api.ts';
import { openObjectStore } from '../../../core/shared-log/shared-log.ts';
import { tick } from '../../../core/shared-log/tick/tick.ts';
import { silentLog } from '../../../core/ports/log.ts';
import { silentMeter } from '../../../core/ports/meter.ts';
import type { ObjectLocation } from '../../../core/ports/object-store.ts';
import { systemClock } from '../../../infra/system-clock.ts';
import { nodeDigests } from '../../../infra/node-digests.ts';
import { FilesystemStorage } from '../../../infra/fs/filesystem-storage.ts';
import { systemIds } from '../../../infra/system-ids.ts';
import { openObjects } from '../../../infra/objects/open-objects.ts';
import { SqliteScavengeStates } from '../../../infra/sqlite/scavenge-states.ts';
import { Random } from '../../support/random.ts';
import { judgeStream } from './history.ts';
import type { Operation } from './history.ts';

const WRITER = fileURLToPath(new URL('writer.ts', import.meta.url));
const STREAMS = 6;

export interface ProcessesOptions {
  readonly place: ObjectLocation;
  readonly env: Readonly<Record<string, string>>;
  readonly writers: number;
  /**
   * At least so long from when all writers are ready; a slow machine takes as long as it needs for a kill, a tick and
   * some events of each.
   */
  readonly seconds: number;
  readonly seed: number;
  readonly say?: (line: string) => void;
}

export interface ProcessesReport {
  readonly problems: readonly string[];
  readonly operations: number;
  readonly appended: number;
  readonly unknown: number;
  readonly conflicts: number;
  readonly refused: Readonly<Record<string, number>>;
  readonly killed: number;
  readonly events: number;
  readonly ticks: number;
}

/**
 * Writers of many processes on one store, some killed and replaced, ticks beside them; then their histories are judged.
 */
export async function runProcesses(options: ProcessesOptions): Promise<ProcessesReport> {
  const { place, seconds, seed, writers } = options;
  const random = new Random(seed);
  const objects = await openObjects(place);
  const world = {
    objects,
    clock: systemClock,
    ids: systemIds,
    digests: nodeDigests,
    log: silentLog,
    meter: silentMeter,
  };
  await (await openObjectStore(world, { chunkSizeBytes: 65_536 })).close();
  const fleet = new Fleet(options);
  for (let i = 0; i < writers; i++) fleet.start();
  await fleet.allReady();
  const untilMs = systemClock.monotonicMs() + seconds * 1_000;
  let killed = 0;
  let ticks = 0;
  const killing = (async () => {
    do {
      await systemClock.sleep(1_000 + random.int(0, 2_000 - 1));
      fleet.kill(random);
      killed++;
      fleet.start();
    } while (systemClock.monotonicMs() < untilMs - 3_000);
  })();
  const ticking = (async () => {
    do {
      await systemClock.sleep(1_500);
      await tickOnce(world);
      ticks++;
    } while (systemClock.monotonicMs() < untilMs);
  })();
  const writing = (async () => {
    while (fleet.appended() <= 3 * writers && fleet.failures.length === 0) await systemClock.sleep(100);
  })();
  await Promise.all([killing, ticking, writing]);
  await fleet.allReady();
  fleet.stop();
  await fleet.ended();
  const judged = await judge(world, fleet.operations());
  await objects.close();
  return { ...judged, problems: [...fleet.failures, ...judged.problems], killed, ticks };
}

type World = Parameters<typeof openObjectStore>[0];

async function tickOnce(world: World): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'skua-writers-tick-'));
  try {
    const scratch = new FilesystemStorage({ root: folder });
    await tick({
      world,
      scratch,
      open: openObjectStore,
      scavengeStates: new SqliteScavengeStates({ indexRoot: scratch.indexRoot }),
      deadlineMs: systemClock.monotonicMs() + 20_000,
      settings: { compactCommitsMin: 8 },
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

class Fleet {
  readonly failures: string[] = [];
  readonly #options: ProcessesOptions;
  readonly #children = new Map<number, ChildProcess>();
  readonly #ended: Promise<void>[] = [];
  readonly #ready: Promise<void>[] = [];
  /** By writer: the last word of each operation. */
  readonly #operations = new Map<string, Operation>();
  readonly #killed = new Set<number>();
  #next = 1;

  constructor(options: ProcessesOptions) {
    this.#options = options;
  }

  start(): void {
    const id = this.#options.seed * 1_000 + this.#next++;
    const child = spawn(process.execPath, [WRITER, JSON.stringify([this.#options.place, id, STREAMS])], {
      env: { ...process.env, ...this.#options.env },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    // One that was killed takes no word any more.
    child.stdin.on('error', () => {});
    const ready = Promise.withResolvers<void>();
    let errors = '';
    child.stderr.on('data', (text: Buffer) => {
      errors = (errors + text.toString()).slice(-2_000);
    });
    createInterface({ input: child.stdout }).on('line', (text) => {
      if (text === '"ready"') return ready.resolve();
      try {
        const operation = JSON.parse(text) as Operation;
        this.#operations.set(`${operation.writer} ${operation.startMs}`, operation);
      } catch {
        // The last line of a process that was killed may be cut.
      }
    });
    this.#children.set(id, child);
    this.#ready.push(ready.promise);
    this.#ended.push(
      new Promise((resolve) => {
        child.on('close', (code) => {
          this.#children.delete(id);
          if (code !== 0 && !this.#killed.has(id)) this.failures.push(`writer ${id} ended with ${code}: ${errors}`);
          ready.resolve();
          resolve();
        });
      }),
    );
  }

  allReady(): Promise<unknown> {
    return Promise.all(this.#ready);
  }
  async ended(): Promise<void> {
    for (let i = 0; i < this.#ended.length; i++) await this.#ended[i];
  }

  kill(random: Random): void {
    const ids = [...this.#children.keys()];
    const id = ids[random.int(0, ids.length - 1)];
    if (id === undefined) return;
    this.#killed.add(id);
    this.#children.get(id)!.kill('SIGKILL');
  }

  /** Every writer ends behind what it is about. */
  stop(): void {
    for (const child of this.#children.values()) child.stdin!.end();
  }

  appended(): number {
    return this.operations().filter(({ outcome }) => outcome.kind === 'appended').length;
  }

  operations(): Operation[] {
    return [...this.#operations.values()];
  }
}

/** Ids of the events of a stream; a short run may have left it alone. */
export async function idsOf({ store }: Pick<ObjectInstance, 'store'>, stream: string): Promise<string[]> {
  const ids: string[] = [];
  const last = await store.streamInfo(stream).then(
    (info) => info.lastEventNumber,
    (error: unknown) => {
      if (isSkuaError(error, 'stream_not_found')) return -1;
      throw error;
    },
  );
  while (ids.length <= last) {
    const { events } = await store.readStream(stream, { direction: 'forward', from: ids.length, count: 4_096 });
    for (const { id } of events) ids.push(id);
    if (events.length === 0) break;
  }
  return ids;
}

async function judge(
  world: World,
  operations: readonly Operation[],
): Promise<Omit<ProcessesReport, 'killed' | 'ticks'>> {
  const instance = await openObjectStore(world);
  const problems: string[] = [];
  let events = 0;
  for (let i = 0; i < STREAMS; i++) {
    const stream = `stream-${i}`;
    const ids = await idsOf(instance, stream);
    events += ids.length;
    problems.push(
      ...judgeStream(
        stream,
        ids,
        operations.filter((operation) => operation.stream === stream),
      ),
    );
  }
  await instance.close();
  const of = (kind: string) => operations.filter(({ outcome }) => outcome.kind === kind);
  const refused: Record<string, number> = {};
  for (const { outcome } of of('refused'))
    if (outcome.kind === 'refused') refused[outcome.code] = (refused[outcome.code] ?? 0) + 1;
  return {
    problems,
    operations: operations.length,
    appended: of('appended').length,
    unknown: of('unknown').length,
    conflicts: of('conflict').length,
    refused,
    events,
  };
}
