import type {
  ChunkTimeRange,
  MetastreamData,
  OriginalStreamData,
  ScavengeCheckpoint,
} from '../ports/scavenge-state.ts';

/** A row stored under a hash, which its key text can't be turned back into cheaply. */
export interface ByHash<T> {
  readonly hi: number;
  readonly lo: number;
  readonly data: T;
}

/** What the tables of a scavenge database hold. */
export interface ScavengeRows {
  /** By `hashKey`. */
  hashUsers: string;
  /** By name. */
  collisions: true;
  sharedHashes: true;
  metastreams: ByHash<MetastreamData>;
  namedMetastreams: MetastreamData;
  originals: ByHash<OriginalStreamData>;
  namedOriginals: OriginalStreamData;
  /** By logical chunk. */
  timeRanges: ChunkTimeRange;
  weights: number;
  /** One row, key 0. */
  checkpoint: ScavengeCheckpoint;
}

type TableName = keyof ScavengeRows;
type KeyOf<N extends TableName> = N extends 'timeRanges' | 'weights' | 'checkpoint' ? number : string;
export type ScavengeTables = { readonly [N in TableName]: Map<KeyOf<N>, ScavengeRows[N]> };
type AnyTable = Map<string | number, unknown>;

/** What a row was before it was changed; undefined for a row that was not there. */
interface Change {
  readonly table: TableName;
  readonly key: string | number;
  readonly before: unknown;
}

export function hashKey(hi: number, lo: number): string {
  return `${hi >>> 0}:${lo >>> 0}`;
}

/**
 * Tables that remember how to undo what was done to them since each of the last commits. An open transaction and a
 * crash that loses commits are both undone by it, so neither needs a copy of the tables.
 */
export class ScavengeContent {
  readonly tables: ScavengeTables;
  readonly #historyCommits: number;
  /** Changes of each commit, the newest last. */
  readonly #history: (readonly Change[])[] = [];
  #open: Change[] | null = null;

  constructor(historyCommits: number, tables: ScavengeTables = emptyTables()) {
    this.#historyCommits = historyCommits;
    this.tables = tables;
  }

  get isOpen(): boolean {
    return this.#open !== null;
  }

  begin(): void {
    this.#open = [];
  }

  commit(): void {
    this.#keep(this.#open ?? []);
    this.#open = null;
  }

  rollback(): void {
    undo(this.tables, this.#open ?? []);
    this.#open = null;
  }

  set<N extends TableName>(table: N, key: KeyOf<N>, row: ScavengeRows[N]): void {
    const rows = this.tables[table] as unknown as AnyTable;
    this.#note({ table, key, before: rows.get(key) });
    rows.set(key, row);
  }

  delete<N extends TableName>(table: N, key: KeyOf<N>): void {
    const rows = this.tables[table] as unknown as AnyTable;
    const before = rows.get(key);
    if (before === undefined) return;
    this.#note({ table, key, before });
    rows.delete(key);
  }

  /** The content as it was after the commit before the last `commitsLost`, and nothing of an open transaction. */
  restart(commitsLost: number): ScavengeContent {
    if (commitsLost > this.#history.length)
      throw new RangeError(`Only the last ${this.#history.length} commits are remembered, not ${commitsLost}.`);
    const tables = copyTables(this.tables);
    undo(tables, this.#open ?? []);
    for (let i = 1; i <= commitsLost; i++) undo(tables, this.#history.at(-i)!);
    return new ScavengeContent(this.#historyCommits, tables);
  }

  /** A change outside of a transaction is a commit of its own. */
  #note(change: Change): void {
    if (this.#open === null) this.#keep([change]);
    else this.#open.push(change);
  }

  #keep(changes: readonly Change[]): void {
    this.#history.push(changes);
    if (this.#history.length > this.#historyCommits) this.#history.shift();
  }
}

function undo(tables: ScavengeTables, changes: readonly Change[]): void {
  for (let i = changes.length - 1; i >= 0; i--) {
    const { table, key, before } = changes[i]!;
    const rows = tables[table] as unknown as AnyTable;
    if (before === undefined) rows.delete(key);
    else rows.set(key, before);
  }
}

function emptyTables(): ScavengeTables {
  return {
    hashUsers: new Map(),
    collisions: new Map(),
    sharedHashes: new Map(),
    metastreams: new Map(),
    namedMetastreams: new Map(),
    originals: new Map(),
    namedOriginals: new Map(),
    timeRanges: new Map(),
    weights: new Map(),
    checkpoint: new Map(),
  };
}

function copyTables(from: ScavengeTables): ScavengeTables {
  const to = emptyTables();
  for (const name of Object.keys(to) as TableName[]) {
    const rows = to[name] as unknown as AnyTable;
    for (const [key, row] of from[name] as unknown as AnyTable) rows.set(key, row);
  }
  return to;
}
