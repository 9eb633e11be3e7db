import { Hash64 } from '../../core/base/stream-hash.ts';
import type { StreamHasher } from '../../core/base/stream-hash.ts';
import type { Statements } from './scavenge-tables.ts';

/** Names of one set, the most recently used first. */
const WAYS = 4;
/** More entries than this count as this many, within the heap of a worker. */
const ENTRIES_MAX = 1_000_000;
/** A cache that would hold more code units is emptied: names can be long, and a worker's heap is limited. */
const UNITS_MAX = 16_777_216;

/** Which name uses which hash, and which names share one. Errors are those of SQLite. */
export class StreamRegistry {
  readonly #sql: Statements;
  readonly #hasher: StreamHasher;
  readonly #users: NameCache;
  /** All collisions that were there when the connection was opened, or found by it; few. */
  readonly #collisions = new Set<string>();
  readonly #sharedHashes = new Set<string>();
  #lastWasNew = true;

  constructor(sql: Statements, hasher: StreamHasher, cacheEntries: number) {
    this.#sql = sql;
    this.#hasher = hasher;
    this.#users = new NameCache(cacheEntries);
    this.reload();
  }

  /** Forgets what a rollback has undone. */
  reload(): void {
    this.#users.clear();
    this.#collisions.clear();
    this.#sharedHashes.clear();
    const hash = new Hash64();
    for (const name of this.collisions()) {
      this.#hasher.hash(name, hash);
      this.#note(name, hash.hi, hash.lo);
    }
  }

  isCollision(name: string): boolean {
    return this.#collisions.size > 0 && this.#collisions.has(name);
  }
  isSharedHash(hi: number, lo: number): boolean {
    return this.#sharedHashes.size > 0 && this.#sharedHashes.has(`${hi}:${lo}`);
  }
  collisions(): string[] {
    return (this.#sql.collisions.all() as unknown as { key: string }[]).map(({ key }) => key);
  }

  /** True when a collision was found. Called for nearly every record. */
  register(name: string, hi: number, lo: number): boolean {
    if (this.#users.has(name, lo) || this.isCollision(name)) return false;
    const user = this.#userOf(name, hi, lo);
    if (user !== name) {
      this.#collide(name, user, hi, lo);
      return true;
    }
    this.#users.add(name, lo);
    return false;
  }

  /**
   * The user of a hash, which is `name` from now on when there was none. One statement is enough where a name is like
   * the one before: mostly new in a first run, known in later ones.
   */
  #userOf(name: string, hi: number, lo: number): string {
    if (this.#lastWasNew) {
      if (Number(this.#sql.addUser.run(hi, lo, name).changes) !== 0) return name;
      this.#lastWasNew = false;
    }
    const row = this.#sql.user.get(hi, lo) as { value: string } | undefined;
    if (row !== undefined) return row.value;
    this.#sql.addUser.run(hi, lo, name);
    this.#lastWasNew = true;
    return name;
  }

  /** The data of the hash were those of `user`, and become those of its name. */
  #collide(name: string, user: string, hi: number, lo: number): void {
    this.#sql.addCollision.run(name);
    this.#note(name, hi, lo);
    if (this.#collisions.has(user)) return;
    this.#sql.addCollision.run(user);
    this.#note(user, hi, lo);
    this.#sql.moveOriginal.run(user, hi, lo);
    this.#sql.deleteOriginal.run(hi, lo);
    this.#sql.moveMetastream.run(user, hi, lo);
    this.#sql.deleteMetastream.run(hi, lo);
  }

  #note(name: string, hi: number, lo: number): void {
    this.#collisions.add(name);
    this.#sharedHashes.add(`${hi}:${lo}`);
  }
}

/**
 * Names known to be the users of their hashes, a bounded number of them. A name may stand in the few places that its
 * hash selects, least recently used last, so that a look-up compares a few strings and allocates nothing.
 */
class NameCache {
  /** Empty until the first name comes: most connections never register one. */
  #names: string[] = [];
  readonly #sets: number;
  #units = 0;

  constructor(entries: number) {
    this.#sets = Math.max(1, Math.floor(Math.min(entries, ENTRIES_MAX) / WAYS));
  }

  has(name: string, lo: number): boolean {
    const names = this.#names;
    const first = ((lo >>> 0) % this.#sets) * WAYS;
    if (names[first] === name) return true;
    for (let i = first + 1; i < first + WAYS; i++) {
      if (names[i] !== name) continue;
      this.#putFirst(first, i, name);
      return true;
    }
    return false;
  }

  /** Adds a name that is absent. */
  add(name: string, lo: number): void {
    if (this.#names.length === 0) this.#names = Array.from({ length: this.#sets * WAYS }, () => '');
    const names = this.#names;
    const first = ((lo >>> 0) % this.#sets) * WAYS;
    this.#units += name.length - names[first + WAYS - 1]!.length;
    if (this.#units > UNITS_MAX) {
      this.clear();
      this.#units = name.length;
    }
    this.#putFirst(first, first + WAYS - 1, name);
  }

  /** Moves what stands before place `at` of the set one place on. */
  #putFirst(first: number, at: number, name: string): void {
    const names = this.#names;
    for (let i = at; i > first; i--) names[i] = names[i - 1]!;
    names[first] = name;
  }

  clear(): void {
    this.#names.fill('');
    this.#units = 0;
  }
}
