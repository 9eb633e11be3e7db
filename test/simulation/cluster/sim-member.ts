import { Patience } from '../../../core/cluster/patience/patience.ts';
import { isSkuaError, type SkuaError } from '../../../core/base/errors.ts';
import { MemoryScavengeStates } from '../../../core/memory/memory-scavenge-state.ts';
import { FaultyStorage } from '../../support/faulty-storage.ts';
import type { RestartMode } from '../../support/faulty-file.ts';
import type { SimProcess } from '../shared-log/sim-process.ts';
import { type OpenedMember, openMember } from './open-member.ts';
import { type DiskHealth, SimDisk } from './sim-disk.ts';
import { PATIENCE_MS } from './truth.ts';
import { LONG_MS, type World } from './world.ts';

/** Errors of an opening after which it is tried again. */
const PASSING = [
  'storage_unreachable',
  'storage_throttled',
  'outcome_unknown',
  'commit_outcome_unknown',
  'too_busy',
  'disk_full',
  'sync_failed',
  'writer_stopped',
  'io_error',
  'store_closed',
  'copy_behind',
];
/** What a member says to which the bucket is not what it was. */
const DIVERGED = ['log_diverged', 'manifest_invalid'];
const RETRY_MS = 1_000;

/** What a directory holds at a moment. */
export interface DiskImage {
  readonly storage: FaultyStorage;
  readonly mode: RestartMode;
  readonly seed: number;
  readonly states: MemoryScavengeStates;
  readonly removed: ReadonlySet<number>;
}

/** A process that runs a member, and what only this run of it knows. */
export interface Run {
  readonly process: SimProcess;
  /** Names this run in epochs. */
  readonly instanceId: string;
  readonly patience: Patience;
  readonly ended: Promise<void>;
  end(): void;
  member: OpenedMember | null;
}

/** A member's place: its address, its disk, and the process that runs there now. */
export class SimMember {
  readonly address: string;
  readonly health: DiskHealth = { slow: 0.05, failingSyncs: 0 };
  run: Run;
  storage: FaultyStorage;
  states = new MemoryScavengeStates();
  /** Positions that were seen to be gone from the copy. */
  removed = new Set<number>();
  /** What a reader has seen here: the position behind the last event of `$all`, and the last number of each stream. */
  seenEnd = 0;
  readonly seen = new Map<string, number>();
  /** The copy was refused, and may be refused: the bucket, or the directory, is not what it was. */
  hasDiverged = false;
  mayDiverge = false;
  /**
   * Nor may it be of the log that the bucket holds now: that one was begun when the bucket was put back to the time
   * before there was any.
   */
  mayBeOfAnother = false;
  readonly #world: World;
  readonly #images: DiskImage[] = [];

  constructor(world: World, address: string) {
    this.#world = world;
    this.address = address;
    this.storage = new FaultyStorage({
      seed: world.random.int(1, 1_000_000),
      reads: world.random.pick(['sync', 'async']),
    });
    this.run = this.#begin();
  }

  /** The open member; null while there is none that answers. */
  get opened(): OpenedMember | null {
    return this.run.process.isDead ? null : this.run.member;
  }

  #begin(): Run {
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    const process = this.#world.newProcess(this.address);
    const run: Run = {
      process,
      instanceId: this.#world.newId(),
      patience: new Patience(process, PATIENCE_MS),
      ended,
      end,
      member: null,
    };
    const ending = new AbortController();
    void ended.then(() => {
      ending.abort();
    });
    void run.patience.watch(ending.signal);
    const { states, health } = this;
    const { timeline, random } = this.#world;
    const disk = new SimDisk({
      storage: this.storage,
      states,
      process: run.process,
      timeline,
      random,
      health,
      onPowerLoss: () => {
        if (this.run === run) this.loseMains();
      },
    });
    this.#world.judge.count('openings');
    openMember({ world: this.#world, process: run.process, disk, states, onCutBack: () => this.#cutBack(run) }).then(
      (member) => {
        run.member = member;
        this.#world.judge.note(`${run.process.name} is open, and ends at ${member.store.end}`);
        void member.failed.then((error) => {
          if (this.run === run) this.#failed(error);
        });
      },
      (error: unknown) => this.#refused(run, error),
    );
    return run;
  }

  /** The member says that it can't go on: its process ends. */
  #failed(error: SkuaError): void {
    const { judge } = this.#world;
    const { name } = this.run.process;
    this.stop();
    this.hasDiverged = true;
    judge.note(`${name} ends: ${String(error)}`);
    judge.count('diverged');
    if (!this.mayDiverge || !this.#isNotTheSame(error)) judge.problem(`${name} ends: ${String(error.stack)}`);
  }

  #isNotTheSame({ code }: SkuaError): boolean {
    return DIVERGED.includes(code) || (this.mayBeOfAnother && code === 'other_log');
  }

  #refused(run: Run, error: unknown): void {
    const { judge, timeline } = this.#world;
    if (this.run !== run) return;
    judge.note(`${run.process.name} can't be opened: ${String(error)}`);
    if (isSkuaError(error) && this.#isNotTheSame(error)) {
      if (error.message.includes('no record that could be compared')) void this.#replaceUnknown(run, error);
      else this.#failed(error);
      return;
    }
    if (!isSkuaError(error) || !PASSING.includes(error.code))
      judge.problem(`${run.process.name} could not be opened: ${String((error as Error).stack)}`);
    timeline.in(RETRY_MS, () => {
      if (this.run === run) this.restart('clean');
    });
  }

  /** A directory without its log-id that holds nothing of the log's: it is moved away, as the error says. */
  async #replaceUnknown(run: Run, error: SkuaError): Promise<void> {
    const hasId = (await this.storage.list('')).includes('log-id');
    if (this.run !== run) return;
    if (hasId) this.#failed(error);
    else this.empty();
  }

  /**
   * The files that come may hold what a scavenge of this copy had removed: those of the bucket may have been scavenged
   * to an older point, or by a higher threshold.
   */
  #cutBack(run: Run): void {
    if (this.run !== run) return;
    this.#world.judge.note(`${run.process.name} is cut back`);
    this.#world.judge.count('cutBack');
    this.removed = new Set();
  }

  /** The process is killed, and another one comes. */
  kill(): void {
    this.#world.judge.note(`${this.run.process.name} is killed`);
    this.#world.judge.count('crashes');
    this.restart('clean');
  }

  loseMains(): void {
    this.#world.judge.note(`${this.run.process.name} loses power`);
    this.#world.judge.count('powerLosses');
    this.restart(this.#world.random.pick(['partial', 'partial', 'drop', 'keep']));
  }

  /** The power fails in the middle of one of the calls to come. */
  loseMainsSoon(): void {
    this.storage.crashAt(this.storage.operations + this.#world.random.int(1, 40));
  }

  restart(mode: RestartMode, isAtOnce = false): void {
    const { random } = this.#world;
    this.stop();
    const seed = random.int(1, 1_000_000);
    const before = this.storage;
    if (random.chance(0.3))
      this.#images.push({
        storage: before,
        mode,
        seed,
        states: this.states.restart(0),
        removed: new Set(this.removed),
      });
    this.storage = before.restart(mode, seed);
    this.storage.setCapacity(Number.MAX_SAFE_INTEGER);
    this.states = lessCommits(this.states, mode === 'clean' ? 0 : random.int(0, 1));
    this.#beginIn(isAtOnce ? 0 : random.int(0, this.#world.isPeace ? 10 : 3_000));
  }

  stop(): void {
    const { run } = this;
    run.process.isDead = true;
    run.end();
  }

  #beginIn(ms: number): void {
    const { run } = this;
    this.#world.timeline.in(ms, () => {
      if (this.run === run) this.run = this.#begin();
    });
  }

  /** Somebody puts back a directory of before, with or without its knowledge of the log. */
  async restore(): Promise<void> {
    if (this.#images.length === 0) return;
    const { random, judge } = this.#world;
    const image = random.pick(this.#images);
    this.stop();
    judge.count('restored');
    this.storage = image.storage.restart(image.mode, image.seed);
    this.states = image.states.restart(0);
    this.removed = new Set(image.removed);
    const keepsId = random.chance(0.5);
    if (!keepsId) await this.storage.remove('log-id');
    judge.note(`an old directory is put back at ${this.address}${keepsId ? '' : ', without its log-id'}`);
    this.#beginIn(random.int(0, 3_000));
  }

  /** The disk is replaced by an empty one. */
  empty(): void {
    const { random, judge } = this.#world;
    this.stop();
    judge.count('emptied');
    judge.note(`${this.address} gets an empty disk`);
    this.storage = new FaultyStorage({ seed: random.int(1, 1_000_000), reads: random.pick(['sync', 'async']) });
    this.states = new MemoryScavengeStates();
    this.removed = new Set();
    this.#beginIn(random.int(0, 3_000));
  }

  freeze(): void {
    const { random, judge } = this.#world;
    const ms = random.chance(0.6) ? random.int(500, 10_000) : random.int(10_000, LONG_MS);
    judge.count('freezes');
    judge.note(`${this.run.process.name} stands still for ${ms} ms`);
    this.run.process.freeze(ms);
  }
}

/** What a crash leaves of the scavenge database. */
function lessCommits(states: MemoryScavengeStates, lost: number): MemoryScavengeStates {
  try {
    return states.restart(lost);
  } catch {
    // It had less to lose.
    return states.restart(0);
  }
}
