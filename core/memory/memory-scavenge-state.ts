import { ScavengeContent, hashKey } from './memory-scavenge-tables.ts';
import { compareCodePoints, misused, STATUS_ACTIVE, wholeTime } from '../ports/scavenge-state.ts';
import type {
  ActiveOriginal,
  ChunkTimeRange,
  MetastreamData,
  OriginalStreamData,
  ScavengeCheckpoint,
  ScavengeState,
  ScavengeStateOptions,
  ScavengeStates,
  StreamHandle,
  StreamStatus,
} from '../ports/scavenge-state.ts';
import type { Storage } from '../ports/storage.ts';

/** Commits that `restart` can lose, unless set otherwise. */
const HISTORY_COMMITS = 1_000;

const byStorage = new WeakMap<Storage, MemoryScavengeStates>();

/** Scavenge states in memory, for a node in memory and for tests. All that are open at a time share one content. */
export class MemoryScavengeStates implements ScavengeStates {
  #content: ScavengeContent;

  /** `historyCommits` commits can be lost by `restart`; they take memory. */
  constructor(
    options: { readonly historyCommits?: number } = {},
    content = new ScavengeContent(options.historyCommits ?? HISTORY_COMMITS),
  ) {
    this.#content = content;
  }

  /** The one that belongs to a storage: a job and the store that runs it find the same one by that storage. */
  static of(storage: Storage): MemoryScavengeStates {
    let states = byStorage.get(storage);
    if (states === undefined) byStorage.set(storage, (states = new MemoryScavengeStates({ historyCommits: 0 })));
    return states;
  }

  open(_options?: ScavengeStateOptions): ScavengeState {
    return new MemoryScavengeState(this.#content);
  }

  storedCheckpoint(_options?: ScavengeStateOptions): ScavengeCheckpoint | null {
    return this.open().checkpoint();
  }

  openTemporary(_options?: ScavengeStateOptions): ScavengeState {
    return new MemoryScavengeState(new ScavengeContent(0));
  }

  isOnDisk(): boolean {
    return false;
  }
  check(): null {
    return null;
  }
  remove(): void {
    this.#content = new ScavengeContent(0);
  }

  /**
   * What a crash leaves that loses the last `commitsLost` commits, as a write-ahead log may; for tests. The original
   * goes on unchanged.
   */
  restart(commitsLost = 0): MemoryScavengeStates {
    return new MemoryScavengeStates({}, this.#content.restart(commitsLost));
  }
}

class MemoryScavengeState implements ScavengeState {
  readonly #content: ScavengeContent;
  #isWriting = false;

  constructor(content: ScavengeContent) {
    this.#content = content;
  }

  get #tables() {
    return this.#content.tables;
  }

  begin(): void {
    if (this.#content.isOpen) throw misused('A transaction was begun while one was open');
    this.#content.begin();
    this.#isWriting = true;
  }

  commit(checkpoint: ScavengeCheckpoint): void {
    if (!this.#isWriting) throw misused('A commit came without a transaction');
    this.#content.set('checkpoint', 0, checkpoint);
    this.#content.commit();
    this.#isWriting = false;
  }

  rollback(): void {
    if (!this.#isWriting) throw misused('A rollback came without a transaction');
    this.#content.rollback();
    this.#isWriting = false;
  }

  checkpoint(): ScavengeCheckpoint | null {
    return this.#tables.checkpoint.get(0) ?? null;
  }

  register(name: string, hi: number, lo: number): boolean {
    const { collisions, hashUsers } = this.#tables;
    if (collisions.has(name)) return false;
    const key = hashKey(hi, lo);
    const user = hashUsers.get(key);
    if (user === undefined) this.#content.set('hashUsers', key, name);
    if (user === undefined || user === name) return false;
    this.#content.set('collisions', name, true);
    this.#content.set('sharedHashes', key, true);
    if (!collisions.has(user)) {
      this.#content.set('collisions', user, true);
      this.#moveToName(key, user);
    }
    return true;
  }

  /** Data that the first user stored before any other had its hash. */
  #moveToName(key: string, user: string): void {
    const original = this.#tables.originals.get(key);
    if (original !== undefined) this.#content.set('namedOriginals', user, original.data);
    this.#content.delete('originals', key);
    const metastream = this.#tables.metastreams.get(key);
    if (metastream !== undefined) this.#content.set('namedMetastreams', user, metastream.data);
    this.#content.delete('metastreams', key);
  }

  isCollision(name: string): boolean {
    return this.#tables.collisions.has(name);
  }
  isSharedHash(hi: number, lo: number): boolean {
    return this.#tables.sharedHashes.size > 0 && this.#tables.sharedHashes.has(hashKey(hi, lo));
  }
  collisions(): readonly string[] {
    return [...this.#tables.collisions.keys()].sort(compareCodePoints);
  }

  original(name: string, hi: number, lo: number): OriginalStreamData | undefined {
    return this.isCollision(name) ? this.#tables.namedOriginals.get(name) : this.originalByHash(hi, lo);
  }

  originalByHash(hi: number, lo: number): OriginalStreamData | undefined {
    return this.#tables.originals.get(hashKey(hi, lo))?.data;
  }

  setOriginal(name: string, hi: number, lo: number, data: OriginalStreamData): void {
    if (this.isCollision(name)) this.#content.set('namedOriginals', name, data);
    else this.#content.set('originals', hashKey(hi, lo), { hi, lo, data });
  }

  metastream(name: string, hi: number, lo: number): MetastreamData | undefined {
    return this.isCollision(name) ? this.#tables.namedMetastreams.get(name) : this.metastreamByHash(hi, lo);
  }

  metastreamByHash(hi: number, lo: number): MetastreamData | undefined {
    return this.#tables.metastreams.get(hashKey(hi, lo))?.data;
  }

  setMetastream(name: string, hi: number, lo: number, data: MetastreamData): void {
    if (this.isCollision(name)) this.#content.set('namedMetastreams', name, data);
    else this.#content.set('metastreams', hashKey(hi, lo), { hi, lo, data });
  }

  activeOriginals(after: StreamHandle | null, limit: number): readonly ActiveOriginal[] {
    const found = after?.kind === 'hash' ? [] : this.#activeByName(after?.name ?? null);
    return [...found, ...this.#activeByHash(after?.kind === 'hash' ? after : null)].slice(0, limit);
  }

  #activeByName(after: string | null): ActiveOriginal[] {
    const found: ActiveOriginal[] = [];
    for (const [name, data] of this.#tables.namedOriginals) {
      if (data.status === STATUS_ACTIVE && (after === null || compareCodePoints(name, after) > 0))
        found.push({ handle: { kind: 'id', name }, data });
    }
    const nameOf = ({ handle }: ActiveOriginal): string => (handle.kind === 'id' ? handle.name : '');
    return found.sort((a, b) => compareCodePoints(nameOf(a), nameOf(b)));
  }

  #activeByHash(after: Hash | null): ActiveOriginal[] {
    return [...this.#tables.originals.values()]
      .filter((row) => row.data.status === STATUS_ACTIVE && (after === null || compareSigned(row, after) > 0))
      .sort(compareSigned)
      .map(({ hi, lo, data }) => ({ handle: { kind: 'hash', hi, lo }, data }));
  }

  forgetDiscardPoints(): void {
    const anew = (data: OriginalStreamData): OriginalStreamData => ({
      ...data,
      discardPoint: 0,
      maybeDiscardPoint: 0,
      status: STATUS_ACTIVE,
    });
    for (const [key, row] of this.#tables.originals)
      if (!row.data.isTombstoned) this.#content.set('originals', key, { ...row, data: anew(row.data) });
    for (const [name, data] of this.#tables.namedOriginals)
      if (!data.isTombstoned) this.#content.set('namedOriginals', name, anew(data));
  }

  setCalculated(handle: StreamHandle, status: StreamStatus, discardPoint: number, maybeDiscardPoint: number): void {
    if (handle.kind === 'id') {
      const data = this.#tables.namedOriginals.get(handle.name);
      if (data !== undefined)
        this.#content.set('namedOriginals', handle.name, { ...data, status, discardPoint, maybeDiscardPoint });
      return;
    }
    const key = hashKey(handle.hi, handle.lo);
    const row = this.#tables.originals.get(key);
    if (row !== undefined)
      this.#content.set('originals', key, { ...row, data: { ...row.data, status, discardPoint, maybeDiscardPoint } });
  }

  setChunkTimeRange(chunk: number, minMs: number, maxMs: number, minTicks = 0, maxTicks = 0): void {
    let min = wholeTime(minMs, minTicks);
    let max = wholeTime(maxMs, maxTicks);
    const known = this.#tables.timeRanges.get(chunk);
    if (known !== undefined) {
      if (isBefore(known.minMs, known.minTicks, min.ms, min.ticks)) min = { ms: known.minMs, ticks: known.minTicks };
      if (isBefore(max.ms, max.ticks, known.maxMs, known.maxTicks)) max = { ms: known.maxMs, ticks: known.maxTicks };
    }
    this.#content.set('timeRanges', chunk, { minMs: min.ms, minTicks: min.ticks, maxMs: max.ms, maxTicks: max.ticks });
  }

  chunkTimeRange(chunk: number): ChunkTimeRange | undefined {
    return this.#tables.timeRanges.get(chunk);
  }

  addWeight(chunk: number, weight: number): void {
    this.#content.set('weights', chunk, (this.#tables.weights.get(chunk) ?? 0) + weight);
  }

  weight(first: number, last: number): number {
    let sum = 0;
    for (let chunk = first; chunk <= last; chunk++) sum += this.#tables.weights.get(chunk) ?? 0;
    return sum;
  }

  resetWeights(first: number, last: number): void {
    for (let chunk = first; chunk <= last; chunk++) this.#content.delete('weights', chunk);
  }

  allWeightsZero(): boolean {
    return [...this.#tables.weights.values()].every((weight) => weight === 0);
  }

  deleteMetastreams(): void {
    for (const key of this.#tables.metastreams.keys()) this.#content.delete('metastreams', key);
    for (const name of this.#tables.namedMetastreams.keys()) this.#content.delete('namedMetastreams', name);
  }

  deleteOriginals(statuses: readonly StreamStatus[]): void {
    for (const [key, { data }] of this.#tables.originals)
      if (statuses.includes(data.status)) this.#content.delete('originals', key);
    for (const [name, data] of this.#tables.namedOriginals)
      if (statuses.includes(data.status)) this.#content.delete('namedOriginals', name);
  }

  close(): void {
    if (this.#isWriting) this.rollback();
  }
}

interface Hash {
  readonly hi: number;
  readonly lo: number;
}

function compareSigned(a: Hash, b: Hash): number {
  return (a.hi | 0) - (b.hi | 0) || (a.lo >>> 0) - (b.lo >>> 0);
}

function isBefore(aMs: number, aTicks: number, bMs: number, bTicks: number): boolean {
  return aMs < bMs || (aMs === bMs && aTicks < bTicks);
}
