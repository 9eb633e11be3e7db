import { firstOfKind, isOfKind, listKind, type OnStrangers } from '../../ports/object-kinds.ts';
import type { ObjectInfo, ObjectStore } from '../../ports/object-store.ts';
import type { ObjectWorld } from '../api.ts';
import {
  commitKey,
  commitNumberOf,
  COMMITS,
  FAILURES,
  FILES,
  manifestNumberOf,
  MANIFESTS,
} from '../format/object-keys.ts';
import { keysOf, type ObjectErasure, type ObjectManifest, readManifest } from '../format/manifest.ts';
import type { LogList } from '../tail/tail.ts';
import { CONTROL, isOldNote } from '../control/control.ts';

/** Objects removed by one tick at most; the rest goes with the next. */
const REMOVE_MAX = 10_000;
/** Keys in one request. */
const BATCH_KEYS = 1_000;
/** Manifests that stay, however old they are. */
const MANIFESTS_KEPT = 4;
/**
 * Objects that no manifest names, old notes and old failures of logins are looked for every this many manifests, ...
 */
export const LEFTOVERS_EVERY = 64;
/** ... when the newest manifest is so old, and before a scavenge is said to have left no trace. */
export const LEFTOVERS_AFTER_MS = 86_400_000;
/** For the sake of removal alone a manifest is written so often at most. */
const CLEAN_UP_EVERY_MS = 60_000;

/** All manifests, the newest first. */
export async function listManifests(objects: ObjectStore, onStrangers?: OnStrangers): Promise<ObjectInfo[]> {
  const found: ObjectInfo[] = [];
  for await (const info of listKind(objects, MANIFESTS, { onStrangers })) found.push(info);
  return found;
}

/** Milliseconds that have to pass, one after the other, before nothing is left of what a manifest has left out. */
export interface Ages {
  /** For so long a writer may not know of a manifest, and carry along what it left out. */
  readonly settleMs: number;
  /** How long objects stay that a manifest has dropped. */
  readonly removeAfterMs: number;
}

/** A writer looks for the newest manifest every `freshMs`; the rest is for the commit that it is making then. */
export function agesOf(freshMs: number, removeAfterMs: number): Ages {
  return { settleMs: freshMs + freshMs / 5, removeAfterMs };
}

/**
 * The run that manifest `number`, written now, ends: until then traces remain at the latest, with time to spare for
 * ticks.
 */
export function erasureOf(scavengeId: string, number: number, nowMs: number, ages: Ages): ObjectErasure {
  return { scavengeId, manifest: number, sinceMs: nowMs, untilMs: nowMs + tracesMs(ages), goneMs: null };
}

/** For so long behind its end traces remain of what a run removed. */
export function tracesMs({ settleMs, removeAfterMs }: Ages): number {
  return removeAfterMs + 2 * settleMs;
}

/** What a sweep did. */
export interface Swept {
  readonly removed: number;
  /** Keys that were dropped and are gone. */
  readonly forgotten: ReadonlySet<string>;
  /** As the next manifest has to say it. */
  readonly erasure: ObjectErasure | undefined;
}

interface SweepParts {
  readonly world: Pick<ObjectWorld, 'objects' | 'digests' | 'clock' | 'onStrangers'>;
  /** The newest manifest, as the tick found it, and all that there were then. */
  readonly base: ObjectManifest;
  readonly manifests: readonly ObjectInfo[];
  readonly log: LogList;
  readonly ages: Ages;
}

/**
 * Removes what is read no more. A manifest that came into force `removeAfterMs` before another one is so old that
 * everybody has taken in a newer one: what it had dropped by then may go, and the commits before its boundary. Both
 * times are those that the store gave the manifests, so no clock of a process counts; where nothing is written, a tick
 * writes a manifest for the sake of its time. What is removed is forgotten by the manifest after that: a crash anywhere
 * leaves objects that the next sweep finds.
 */
export class Sweep {
  readonly #parts: SweepParts;
  readonly #baseMs: number;
  readonly #times: ReadonlyMap<number, number>;
  readonly #erasure: ObjectErasure | undefined;

  constructor(parts: SweepParts) {
    const { base, manifests, ages } = parts;
    this.#parts = parts;
    this.#times = new Map(manifests.map(({ key, modifiedMs }) => [manifestNumberOf(key)!, modifiedMs]));
    this.#baseMs = this.#times.get(base.number) ?? base.writtenMs;
    const { erasure } = base;
    const sinceMs = erasure === undefined ? undefined : this.#times.get(erasure.manifest);
    // By the clock of the store as soon as that is known.
    this.#erasure =
      erasure === undefined || sinceMs === undefined
        ? erasure
        : { ...erasure, sinceMs, untilMs: sinceMs + tracesMs(ages) };
  }

  /**
   * Whether a manifest is worth writing for the sake of removal alone. Costs a request at most, and none where nothing
   * waits.
   */
  async isDue(): Promise<boolean> {
    const {
      log: { first },
      ages: { settleMs },
    } = this.#parts;
    const nowMs = this.#nowMs;
    const waiting = this.#pending;
    // What may carry along traces has to be taken over, however little it is.
    if (
      waiting !== null &&
      first !== null &&
      first.modifiedMs <= waiting.sinceMs + settleMs &&
      nowMs > waiting.sinceMs + settleMs
    )
      return true;
    // The manifest that takes over the tail removes, too.
    if (waiting === null && first !== null) return false;
    return this.#isLongAgo || (this.#ageMs >= CLEAN_UP_EVERY_MS && (await this.#hasAged(nowMs)));
  }

  /** Of the newest manifest, by the clocks of processes; one that has been set back since is no reason to wait. */
  get #ageMs(): number {
    const { world, base } = this.#parts;
    return Math.abs(world.clock.nowMs() - base.writtenMs);
  }

  /**
   * What the clock of the store says now, about: that decides only whether to write a manifest, the time of which is
   * the store's own.
   */
  get #nowMs(): number {
    return this.#baseMs + this.#ageMs;
  }

  /** Of the last run, while traces of what it removed may remain. */
  get #pending(): ObjectErasure | null {
    return this.#erasure === undefined || this.#erasure.goneMs !== null ? null : this.#erasure;
  }

  async #hasAged(atMs: number): Promise<boolean> {
    const {
      base,
      log: { old },
      ages: { removeAfterMs },
    } = this.#parts;
    if (this.#pending !== null && atMs - this.#pending.sinceMs >= removeAfterMs) return true;
    if (base.dropped.some(({ by }) => this.#isAged(by, atMs))) return true;
    // It was written before it was dropped.
    if (old === null || atMs - old.modifiedMs < removeAfterMs) return false;
    const horizon = await this.#horizon(atMs);
    return horizon !== null && commitNumberOf(old.key)! < horizon.boundary;
  }

  /**
   * Whether `removeAfterMs` have passed since that manifest came into force. Those that are not listed any more are
   * older than others that have aged.
   */
  #isAged(manifest: number | undefined, atMs: number): boolean {
    const number = manifest ?? this.#parts.base.number;
    return atMs - (this.#times.get(number) ?? -Infinity) >= this.#parts.ages.removeAfterMs;
  }

  /** The newest manifest that is old enough; null when there is none. */
  async #horizon(atMs: number): Promise<ObjectManifest | null> {
    const {
      world: { objects, digests },
      base,
      manifests,
    } = this.#parts;
    const found = manifests.find(({ key }) => this.#isAged(manifestNumberOf(key)!, atMs));
    if (found === undefined) return null;
    const number = manifestNumberOf(found.key)!;
    return number === base.number ? base : readManifest(objects, number, digests);
  }

  /** Removes what has aged by the time of the newest manifest. */
  async run(): Promise<Swept> {
    const {
      world: { objects },
      base,
      manifests,
      log: { old },
    } = this.#parts;
    const atMs = this.#baseMs;
    const gone = new Gone(objects);
    const dropped = base.dropped.filter(({ by }) => this.#isAged(by, atMs)).map(({ key }) => key);
    for (const key of dropped) if (isOfKind(FILES, key)) await gone.add(key);
    const place = manifests.findIndex(({ key }) => this.#isAged(manifestNumberOf(key)!, atMs));
    if (place >= 0) for (const { key } of manifests.slice(Math.max(place + 1, MANIFESTS_KEPT))) await gone.add(key);
    const horizon = old === null && this.#pending === null ? null : await this.#horizon(atMs);
    if (horizon !== null && old !== null) await commitsBelow(gone, objects, horizon.boundary);
    const isLast = horizon !== null && !gone.isFull && (await this.#isLast(horizon));
    if (isLast || (base.number + 1) % LEFTOVERS_EVERY === 0 || this.#isLongAgo) await this.#leftovers(gone, isLast);
    await gone.flush();
    const erasure =
      isLast && !gone.isFull
        ? { ...this.#pending!, goneMs: Math.floor(this.#parts.world.clock.nowMs()) }
        : this.#erasure;
    return { removed: gone.count, forgotten: gone.isFull ? new Set() : new Set(dropped), erasure };
  }

  get #isLongAgo(): boolean {
    return this.#ageMs >= LEFTOVERS_AFTER_MS;
  }

  /**
   * With what is being removed the last traces go: everything that the run has dropped, and all commits that a writer
   * made who may not have known of that. A commit follows the one before it, also in time, so the first that stays
   * tells of all.
   */
  async #isLast(horizon: ObjectManifest): Promise<boolean> {
    const {
      world: { objects },
      base,
      log: { first, old },
      ages: { settleMs },
    } = this.#parts;
    const waiting = this.#pending;
    if (waiting === null || horizon.number < waiting.manifest) return false;
    const stays =
      old === null || horizon.boundary >= base.boundary
        ? first
        : await firstOfKind(objects, COMMITS, { after: commitKey(horizon.boundary - 1) });
    return stays === null || stays.modifiedMs > waiting.sinceMs + settleMs;
  }

  /**
   * Files that ticks uploaded and never named, notes that are not looked at, and failed logins of long ago. A tick that
   * stands on the newest manifest uploads behind it, and one that stands on an older one is too late: so what no
   * manifest names may go as soon as it is a little older than the newest.
   */
  async #leftovers(gone: Gone, isAll: boolean): Promise<void> {
    const {
      world: { objects, onStrangers },
      base,
      ages: { settleMs, removeAfterMs },
    } = this.#parts;
    const beforeMs = this.#baseMs - removeAfterMs;
    const filesMs = isAll ? this.#baseMs - settleMs : beforeMs;
    const named = keysOf(base);
    for (const { key } of base.dropped) named.add(key);
    for await (const { key, modifiedMs } of listKind(objects, FILES, { onStrangers }))
      if (modifiedMs <= filesMs && !named.has(key)) await gone.add(key);
    for await (const { key, modifiedMs } of listKind(objects, CONTROL, { onStrangers }))
      if (modifiedMs <= beforeMs && isOldNote(key, base)) await gone.add(key);
    for await (const { key, modifiedMs } of listKind(objects, FAILURES, { onStrangers })) {
      if (gone.isFull) return;
      if (modifiedMs <= beforeMs) await gone.add(key);
    }
  }
}

async function commitsBelow(gone: Gone, objects: ObjectStore, boundary: number): Promise<void> {
  for await (const { key } of listKind(objects, COMMITS)) {
    const number = commitNumberOf(key);
    if (number === null || number >= boundary || gone.isFull) return;
    await gone.add(key);
  }
}

/** Collects keys and removes them by the thousand. */
class Gone {
  readonly #objects: ObjectStore;
  #keys: string[] = [];
  count = 0;

  constructor(objects: ObjectStore) {
    this.#objects = objects;
  }

  /** Something may have been left. */
  get isFull(): boolean {
    return this.count >= REMOVE_MAX;
  }

  async add(key: string): Promise<void> {
    if (this.isFull) return;
    this.#keys.push(key);
    this.count++;
    if (this.#keys.length === BATCH_KEYS) await this.flush();
  }

  async flush(): Promise<void> {
    const keys = this.#keys;
    this.#keys = [];
    if (keys.length > 0) await this.#objects.remove(keys);
  }
}
