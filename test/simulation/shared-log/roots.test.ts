import type * as Promises from 'node:fs/promises';
import {
  cpSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test, vi } from 'vitest';
import { isSkuaError, type SkuaError } from '../../../core/base/errors.ts';
import type { ObjectInstance, ObjectWorld } from '../../../core/shared-log/api.ts';
import { openObjectStore } from '../../../core/shared-log/shared-log.ts';
import { silentLog } from '../../../core/ports/log.ts';
import { silentMeter } from '../../../core/ports/meter.ts';
import { ANY, type NewEvent } from '../../../core/streams/api.ts';
import { nodeDigests } from '../../../infra/node-digests.ts';
import { identityOf } from '../../../infra/fs/root.ts';
import { DirectoryObjects } from '../../../infra/objects/directory-objects.ts';
import { AutoClock } from '../../shared-log/auto-clock.ts';
import { compactionTick } from '../../shared-log/tick-kit.ts';
import { Random } from '../../support/random.ts';
import { bySize } from '../../support/run-size.ts';
import { newUuid } from '../../../core/shared-log/format/object-keys.ts';
import { SeededIds } from '../../support/seeded-ids.ts';

/**
 * Two writers and ticks over one directory, which meanwhile is renamed, replaced by an empty one, by an older copy or
 * by a fresh one, copied with hard links, made read-only, or filled up, between any two system calls; and links whose
 * reply is lost. Then all is well again, and somebody who has seen nothing of it must find what was acknowledged, once.
 * The directory is a real one, so that the code under test is that of the product.
 */
const SEEDS = bySize(12, 60, 400);
const STEPS = 40;
const LAST_TRIES = 3;
const CALM = ['storage_unreachable', 'storage_denied', 'disk_full', 'commit_contended', 'too_busy', 'outcome_unknown'];

/** What is asked at every system call that changes a name. */
const disk = vi.hoisted(() => ({
  before: async (_op: string, _target: string): Promise<void> => {},
  after: async (_op: string, _target: string): Promise<void> => {},
}));
vi.mock('node:fs/promises', async (original) => {
  const real = await original<typeof Promises>();
  const hooked =
    <A extends unknown[], R>(op: string, target: (args: A) => string, call: (...args: A) => Promise<R>) =>
    async (...args: A): Promise<R> => {
      await disk.before(op, target(args));
      const result = await call(...args);
      await disk.after(op, target(args));
      return result;
    };
  return {
    ...real,
    link: hooked('link', ([, to]) => to, real.link as (from: string, to: string) => Promise<void>),
    rename: hooked('rename', ([, to]) => to, real.rename as (from: string, to: string) => Promise<void>),
    mkdir: hooked(
      'mkdir',
      ([folder]) => folder,
      real.mkdir as (folder: string, options?: object) => Promise<string | undefined>,
    ),
    readdir: hooked(
      'readdir',
      ([folder]) => folder,
      real.readdir as unknown as (folder: string, options?: object) => Promise<unknown>,
    ),
    open: hooked(
      'open',
      ([file]) => file,
      real.open as (file: string, flags?: string, mode?: number) => Promise<unknown>,
    ),
  };
});

const base = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'skua-roots-'));
afterAll(() => {
  rmSync(base, { recursive: true, force: true });
});

function failure(code: string): Error {
  return Object.assign(new Error(`${code} by the test`), { code });
}

type Trouble = 'away' | 'empty' | 'older' | 'fresh' | 'snapshot' | 'read-only' | 'full' | 'flash' | 'twin';
const TROUBLES: readonly Trouble[] = [
  'away',
  'empty',
  'older',
  'older',
  'older',
  'fresh',
  'snapshot',
  'snapshot',
  'read-only',
  'full',
  'flash',
  'twin',
  'twin',
  'twin',
];

class Roots {
  readonly root: string;
  readonly #folder: string;
  readonly #random: Random;
  #names = 0;
  /** Where the right root lies while it is not in its place. */
  #away: string | null = null;
  #older: string | null = null;
  #refusal: string | null = null;
  /** On which the root lies. */
  #device = 1;
  #isTwin = false;
  /** There and back during one system call is what nobody can see. */
  #isLinking = false;
  /** System calls so far, and the one at which the last trouble came. */
  #calls = 0;
  #sinceCall = 0;
  /** Chance of trouble at each call. */
  chance = 0;
  readonly counts: Record<string, number> = {};
  readonly problems: string[] = [];
  /** Lets somebody else write in between. */
  meanwhile: () => Promise<void> = async () => {};
  #isBusy = false;

  constructor(folder: string, random: Random) {
    this.#folder = folder;
    this.root = join(folder, 'root');
    this.#random = random;
  }

  /**
   * To another device, where not all have looked yet: who looks for the first time while an older copy lies there can't
   * tell.
   */
  hasMoved = false;

  readonly identityOf = (at: string): string | null => identityOf(at)?.replace(/^\d+/, String(this.#device)) ?? null;

  #fresh(name: string): string {
    return join(this.#folder, `${name}-${this.#names++}`);
  }

  async before(op: string, target: string): Promise<void> {
    if (op === 'link') this.#isLinking = false;
    if (!target.startsWith(this.root) || this.#isBusy) return;
    this.#calls++;
    await this.#meddle(op, true);
    const changes = op !== 'readdir' && (op !== 'open' || target.includes('.tmp'));
    if (this.#refusal !== null && changes) throw failure(this.#refusal);
  }

  async after(op: string, target: string): Promise<void> {
    if (op === 'link') this.#isLinking = false;
    if (!target.startsWith(this.root) || this.#isBusy || this.#isTwin) return;
    await this.#meddle(op, false);
    if (op !== 'link' || this.chance === 0 || !this.#random.chance(0.1)) return;
    const code = this.#random.pick(['EEXIST', 'EIO', 'ETIMEDOUT']);
    this.#count(`link ${code}`);
    throw failure(code);
  }

  #count(name: string): void {
    this.counts[name] = (this.counts[name] ?? 0) + 1;
  }

  async #meddle(op: string, isBefore: boolean): Promise<void> {
    if (this.chance === 0 || this.hasMoved || this.#isLinking) return;
    if (this.#away !== null || this.#refusal !== null) {
      // Not in the call before which it went.
      if (this.#isTwin || (this.#calls > this.#sinceCall && this.#random.chance(0.1))) this.mend();
      return;
    }
    if (op === 'link' && this.#random.chance(0.1)) {
      this.#isBusy = true;
      await this.meanwhile().finally(() => {
        this.#isBusy = false;
      });
    }
    if (!this.#random.chance(this.chance)) return;
    const kind = this.#random.pick(TROUBLES);
    // A twin that has the temporary file takes the place for a moment, in which the link is made.
    if (kind === 'twin' && (op !== 'link' || !isBefore)) return;
    // The one moment in which a copy that takes the place for good is not seen.
    if (kind === 'fresh' && op === 'link' && isBefore) return;
    this.#sinceCall = this.#calls;
    this.trouble(kind);
  }

  trouble(kind: Trouble): void {
    this.#count(kind);
    switch (kind) {
      case 'snapshot': {
        const to = this.#fresh('snapshot');
        this.#link(this.root, to);
        this.#older ??= to;
        return;
      }
      case 'read-only':
        this.#refusal = this.#random.pick(['EROFS', 'EACCES']);
        return;
      case 'full':
        this.#refusal = 'ENOSPC';
        return;
      case 'fresh': {
        // A move to another disk: what is there now is the right one.
        const to = this.#fresh('moved');
        cpSync(this.root, to, { recursive: true });
        renameSync(this.root, this.#fresh('left'));
        renameSync(to, this.root);
        this.#device++;
        this.hasMoved = true;
        return;
      }
      case 'flash':
        this.#go();
        this.mend();
        return;
      case 'twin':
        this.#go();
        this.#link(this.#away!, this.root);
        this.#isTwin = this.#isLinking = true;
        return;
      case 'older':
        if (this.#older === null) return;
        this.#go();
        cpSync(this.#older, this.root, { recursive: true });
        return;
      case 'empty':
        this.#go();
        mkdirSync(this.root);
        return;
      case 'away':
        this.#go();
    }
  }

  #go(): void {
    this.#away = this.#fresh('away');
    renameSync(this.root, this.#away);
  }

  #link(from: string, to: string): void {
    mkdirSync(to);
    for (const name of readdirSync(from)) {
      if (statSync(join(from, name)).isDirectory()) this.#link(join(from, name), join(to, name));
      else linkSync(join(from, name), join(to, name));
    }
  }

  /** Everything is in its place again. */
  mend(): void {
    this.#refusal = null;
    this.#isTwin = this.#isLinking = false;
    if (this.#away === null) return;
    if (existsSync(this.root)) renameSync(this.root, this.#fresh('wrong'));
    renameSync(this.#away, this.root);
    this.#away = null;
  }

  /** Copies of one moment are older ones later. */
  copy(): void {
    if (this.#away !== null) return;
    this.#older = this.#fresh('older');
    cpSync(this.root, this.#older, { recursive: true });
  }
}

interface Writer {
  readonly objects: DirectoryObjects;
  readonly world: ObjectWorld;
  instance: ObjectInstance | null;
}

async function simulate(
  seed: number,
): Promise<{ problems: readonly string[]; counts: Readonly<Record<string, number>>; acknowledged: number }> {
  const random = new Random(seed);
  const folder = join(base, String(seed));
  mkdirSync(folder);
  const roots = new Roots(folder, random);
  disk.before = (op, target) => roots.before(op, target);
  disk.after = (op, target) => roots.after(op, target);
  const clock = new AutoClock();
  let seeds = seed * 1_000;
  const ids = new SeededIds(seed);
  const acknowledged = new Map<string, number>();
  const refused = new Set<string>();
  const unknown = new Set<string>();
  const open: NewEvent[] = [];
  let refusal = '';
  const problem = (what: string): void => {
    roots.problems.push(`seed ${seed}: ${what}`);
  };
  const judge = (error: unknown): SkuaError | null => {
    if (isSkuaError(error) && [...CALM, 'commit_outcome_unknown'].includes(error.code)) return error;
    problem(`an unexpected error: ${String((error as Error).stack)}`);
    return null;
  };
  const newWriter = (): Writer => {
    const objects = new DirectoryObjects({
      root: roots.root,
      nowMs: () => clock.nowMs(),
      identityOf: roots.identityOf,
    });
    return {
      objects,
      instance: null,
      world: { objects, clock, ids: new SeededIds(++seeds), digests: nodeDigests, log: silentLog, meter: silentMeter },
    };
  };
  const instanceOf = async (writer: Writer): Promise<ObjectInstance> =>
    (writer.instance ??= await openObjectStore(writer.world, {
      chunkSizeBytes: 65_536,
      cacheBytes: 1_048_576,
      commitDeadlineMs: 3_000,
      streams: { recentIds: 64, idLookbackEvents: 1_000 },
    }));
  const append = async (writer: Writer): Promise<void> => {
    const event: NewEvent =
      open.length > 0 && random.chance(0.5)
        ? open.splice(random.int(0, open.length - 1), 1)[0]!
        : { id: newUuid(ids), type: 'T', isJson: false, data: new Uint8Array(50), metadata: new Uint8Array(0) };
    try {
      const { store } = await instanceOf(writer);
      const { lastEventNumber } = await store.append('s', ANY, [event]);
      acknowledged.set(event.id, lastEventNumber);
    } catch (error) {
      refusal = String(error);
      if (judge(error)?.code === 'commit_outcome_unknown') {
        unknown.add(event.id);
        open.push(event);
      } else if (!unknown.has(event.id)) refused.add(event.id);
    }
  };
  const [first, second] = [newWriter(), newWriter()];
  // The log is there before anything happens to it.
  await append(first);
  await append(second);
  roots.chance = random.pick([0.02, 0.05, 0.1]);
  let active = first;
  roots.meanwhile = () => append(active === first ? second : first);
  for (let step = 0; step < STEPS; step++) {
    const writer = (active = random.chance(0.5) ? first : second);
    const what = random.int(0, 11);
    if (roots.hasMoved)
      roots.hasMoved = (await Promise.allSettled([first, second].map(({ objects }) => objects.head('log')))).some(
        ({ status }) => status === 'rejected',
      );
    try {
      if (what === 0) roots.copy();
      else if (what === 1) await compactionTick({ ...writer.world, ids: new SeededIds(++seeds) });
      else if (what === 2) {
        const events = await (
          await instanceOf(writer)
        ).store.readStream('s', { direction: 'forward', from: 0, count: 4_096 });
        const found = new Set(events.events.map(({ id }) => id));
        for (const id of acknowledged.keys())
          if (!found.has(id)) problem(`a read does not find ${id}, which was acknowledged`);
      } else await append(writer);
    } catch (error) {
      judge(error);
    }
  }
  roots.chance = 0;
  roots.mend();
  for (const writer of [first, second]) {
    // Who has seen all of it goes on without a restart.
    const before = acknowledged.size;
    // A root that came meanwhile is taken for the right one by the first call, and what became of a write before is
    // found out by another.
    for (let tries = 0; tries < LAST_TRIES && acknowledged.size === before; tries++) await append(writer);
    if (acknowledged.size === before && open.length === 0)
      problem(`a writer does not go on when all is well again: ${refusal}`);
    await writer.instance?.close();
    await writer.objects.close();
  }
  const last = newWriter();
  const { events } = await (
    await instanceOf(last)
  ).store.readStream('s', { direction: 'forward', from: 0, count: 4_096 });
  const times = new Map<string, number>();
  for (const { id, number } of events) {
    times.set(id, (times.get(id) ?? 0) + 1);
    if (refused.has(id) && !acknowledged.has(id)) problem(`${id} was refused, and is there`);
    if (acknowledged.has(id) && acknowledged.get(id) !== number)
      problem(`${id} was acknowledged as ${acknowledged.get(id)}, and is ${number}`);
  }
  for (const id of acknowledged.keys()) if (!times.has(id)) problem(`${id} was acknowledged, and is lost`);
  for (const [id, count] of times) if (count > 1) problem(`${id} is there ${count} times`);
  await last.instance!.close();
  await last.objects.close();
  rmSync(folder, { recursive: true, force: true });
  return { problems: roots.problems, counts: roots.counts, acknowledged: acknowledged.size };
}

test(
  `nothing that was acknowledged is lost or doubled, whatever becomes of the directory (${SEEDS} seeds)`,
  { timeout: 600_000 },
  async () => {
    const counts: Record<string, number> = {};
    const problems: string[] = [];
    let acknowledged = 0;
    for (let seed = 1; seed <= SEEDS; seed++) {
      const result = await simulate(seed).catch((error: unknown) => ({
        problems: [`seed ${seed}: ${String(error)}`],
        counts: {},
        acknowledged: 0,
      }));
      problems.push(...result.problems);
      acknowledged += result.acknowledged;
      for (const [name, count] of Object.entries(result.counts)) counts[name] = (counts[name] ?? 0) + count;
    }
    expect(problems).toEqual([]);
    expect(acknowledged).toBeGreaterThan(SEEDS * 10);
    for (const kind of TROUBLES) expect(counts[kind], kind).toBeGreaterThan(0);
  },
);
