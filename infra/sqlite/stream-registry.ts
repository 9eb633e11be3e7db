import { Hash64 } from '../../core/index/stream-hash.ts';
import type { StreamHasher } from '../../core/index/stream-hash.ts';
import { NameCache } from './name-cache.ts';
import type { Statements } from './scavenge-statements.ts';

/** Which name uses which hash, and which names share one; scavenge.md section 4.4. Errors are those of SQLite. */
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

  isCollision(name: string): boolean { return this.#collisions.size > 0 && this.#collisions.has(name); }
  isSharedHash(hi: number, lo: number): boolean { return this.#sharedHashes.size > 0 && this.#sharedHashes.has(`${hi}:${lo}`); }
  collisions(): string[] { return (this.#sql.collisions.all() as unknown as { key: string }[]).map(({ key }) => key); }

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
      if (this.#sql.addUser.run(hi, lo, name).changes !== 0) return name;
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
    this.#sql.moveOriginal.run(hi, lo, user);
    this.#sql.deleteOriginal.run(hi, lo);
    this.#sql.moveMetastream.run(hi, lo, user);
    this.#sql.deleteMetastream.run(hi, lo);
  }

  #note(name: string, hi: number, lo: number): void {
    this.#collisions.add(name);
    this.#sharedHashes.add(`${hi}:${lo}`);
  }
}
