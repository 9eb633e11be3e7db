import { SkuaError } from '../../base/errors.ts';
import { TABLE_JOBS } from '../../index/jobs/jobs.ts';
import { InlineJobs } from '../../memory/inline-jobs.ts';
import { newId } from '../../ports/ids.ts';
import {
  DEFAULT_CONFIG,
  type DryRunReport,
  type Explanation,
  type ResumedPoint,
  type ScavengeConfig,
  type ScavengeDeps,
  type ScavengeOptions,
  type ScavengeProgress,
} from '../../scavenge/api.ts';
import { SCAVENGE_JOBS } from '../../scavenge/jobs/jobs.ts';
import { checkedOptions, dryRunProgress, dryRunReport, explainStream } from '../../scavenge/launch/launch.ts';
import type { StreamHasher } from '../../base/stream-hash.ts';
import type { ObjectInstance, ObjectLogOptions, ObjectWorld } from '../api.ts';
import { newestManifest } from '../format/manifest.ts';
import { openOverlay, type TemporaryStorage } from '../overlay/overlay.ts';
import { indexLog, openIndex } from '../tick/compaction.ts';

/** Streams explained at once. */
const EXPLAINS_MAX = 2;
/** Dry runs whose reports are kept. */
const DRY_RUNS_MAX = 8;

interface DryRunsParts {
  readonly world: ObjectWorld;
  readonly options: ObjectLogOptions;
  /** How ticks scavenge this store. */
  readonly config: Partial<ScavengeConfig>;
  readonly instance: Pick<ObjectInstance, 'internals' | 'refresh'>;
  readonly newTemporaryStorage: () => Promise<TemporaryStorage>;
  /** Tests inject a hash with collisions. */
  readonly hasher?: StreamHasher;
}

type Outcome = { readonly report: DryRunReport } | { readonly error: unknown } | null;

interface ActiveDryRun {
  readonly scavengeId: string;
  readonly progress: ReturnType<typeof dryRunProgress>;
  readonly ending: AbortController;
  readonly ended: Promise<void>;
}

/**
 * What a scavenge of a store on object storage would do, found out on the newest manifest and the tail behind it,
 * without publishing anything: as if a tick had begun a run now and its work were thrown away. It belongs to this
 * process alone; other processes know nothing of its dry runs.
 */
export class DryRuns {
  readonly #parts: DryRunsParts;
  readonly #closing = new AbortController();
  readonly #outcomes = new Map<string, Outcome>();
  readonly #explaining = new Set<Promise<unknown>>();
  #active: ActiveDryRun | null = null;

  constructor(parts: DryRunsParts) {
    this.#parts = parts;
  }

  /** As `ScavengeView.explain`. Rejects with `aborted` when the signal ends it, besides. */
  async explain(stream: string, signal: AbortSignal = this.#closing.signal): Promise<Explanation> {
    this.#refuseClosed();
    if (this.#explaining.size >= EXPLAINS_MAX)
      throw new SkuaError('too_busy', `${EXPLAINS_MAX} streams are already being explained: try again later.`, {
        limit: EXPLAINS_MAX,
      });
    const explaining = withDeps(this.#parts, signal, async (deps) =>
      explainStream(deps, stream, signal, await waitingIn(this.#parts.world)),
    );
    this.#explaining.add(explaining);
    try {
      return await explaining;
    } finally {
      this.#explaining.delete(explaining);
    }
  }

  /** As `ScavengeControl.startDryRun`: one at a time. */
  startDryRun(asked: ScavengeOptions = {}): { readonly scavengeId: string } {
    const options = checkedOptions(asked);
    this.#refuseClosed();
    if (this.#active !== null)
      throw new SkuaError(
        'scavenge_in_progress',
        `The dry run ${this.#active.scavengeId} is running: wait until it has finished, or stop it.`,
        { scavengeId: this.#active.scavengeId },
      );
    const { world } = this.#parts;
    const scavengeId = newId(world.ids);
    const progress = dryRunProgress(scavengeId, world);
    const ending = new AbortController();
    for (const old of this.#outcomes.keys()) if (this.#outcomes.size >= DRY_RUNS_MAX) this.#outcomes.delete(old);
    this.#outcomes.set(scavengeId, null);
    const ended = withDeps(this.#parts, ending.signal, async (deps) =>
      dryRunReport(deps, scavengeId, options, ending.signal, (told) => progress.ofPhase(told), await waitingIn(world)),
    ).then(
      (report) => this.#ended(scavengeId, { report }),
      (error: unknown) => this.#ended(scavengeId, { error }),
    );
    this.#active = { scavengeId, progress, ending, ended };
    return { scavengeId };
  }

  #ended(scavengeId: string, outcome: Outcome): void {
    this.#outcomes.set(scavengeId, outcome);
    this.#active = null;
  }

  /** As `ScavengeView.dryRun`. */
  dryRun(scavengeId: string): DryRunReport | null {
    const outcome = this.#outcomes.get(scavengeId);
    if (outcome === undefined) throw new SkuaError('scavenge_not_found', 'Scavenge Id does not exist', { scavengeId });
    if (outcome === null) return null;
    if ('error' in outcome) throw outcome.error;
    return outcome.report;
  }

  /** Id of the dry run that is active, or null. */
  current(): string | null {
    return this.#active?.scavengeId ?? null;
  }

  progress(): ScavengeProgress | null {
    return this.#active?.progress.current() ?? null;
  }

  /** Ends the dry run that is active, and resolves when it has ended. */
  async stop(): Promise<void> {
    const active = this.#active;
    active?.ending.abort();
    await active?.ended;
  }

  /** Ends whatever is active, and waits for it. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.stop();
    await Promise.allSettled(this.#explaining);
  }

  #refuseClosed(): void {
    if (this.#closing.signal.aborted)
      throw new SkuaError('store_closed', 'The store is closed: no dry runs or explanations any more.');
  }
}

/** What the next run that ticks carry on goes to; the scavenge database itself stays where it is. */
async function waitingIn({ objects, digests }: ObjectWorld): Promise<ResumedPoint | null> {
  return (await newestManifest(objects, digests))?.scavenge?.waiting ?? null;
}

/** What scavenging works with, over a view of the files that is thrown away afterwards. */
async function withDeps<T>(
  parts: DryRunsParts,
  signal: AbortSignal,
  work: (deps: ScavengeDeps) => Promise<T>,
): Promise<T> {
  const { world, options, config, instance, newTemporaryStorage, hasher } = parts;
  const { digests, ids, clock } = world;
  const temporary = await newTemporaryStorage();
  const undo: (() => Promise<void>)[] = [() => temporary.remove()];
  const stopped = () => {
    if (signal.aborted) throw new SkuaError('aborted', 'It was interrupted.');
  };
  try {
    const overlay = await openOverlay(world, options, temporary.storage);
    undo.push(() => overlay.close());
    stopped();
    const { storage, log, cache } = overlay;
    const jobs = new InlineJobs({
      jobs: { ...TABLE_JOBS, ...SCAVENGE_JOBS },
      storage,
      digests,
      ids,
      clock,
      scavengeStates: temporary.states,
      ...(hasher !== undefined && { hasher }),
    });
    undo.push(() => jobs.close());
    const index = await openIndex(
      {
        world,
        storage,
        cache,
        jobs,
        ...(options.indexCacheDepth !== undefined && { cacheDepth: options.indexCacheDepth }),
        ...(hasher !== undefined && { hasher }),
      },
      log.logEnd,
    );
    undo.push(() => index.close());
    await indexLog(index, log, world);
    stopped();
    await instance.refresh();
    return await work({
      data: { store: instance.internals, index, table: log.table, cache, withNextChunk: (next) => next() },
      ports: { ...world, storage, jobs, states: temporary.states },
      config: { ...DEFAULT_CONFIG, ...config, repairHistory: false },
    });
  } finally {
    for (const step of undo.reverse()) await step();
  }
}
