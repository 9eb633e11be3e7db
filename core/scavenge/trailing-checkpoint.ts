/** A chunk that was taken. */
export interface Taken {
  readonly endNumber: number;
  isDone: boolean;
}

/**
 * The checkpoint of work that several threads do at once: it may name a chunk only when that one and every chunk taken
 * before it are finished; scavenge.md section 6.5.
 */
export class TrailingCheckpoint {
  readonly #underWay: Taken[] = [];
  /** Last logical chunk up to which everything is finished; undefined for none. */
  done: number | undefined;

  constructor(done: number | undefined) {
    this.done = done;
  }

  /** Chunks are taken in the order of the log. */
  take(endNumber: number): Taken {
    const taken = { endNumber, isDone: false };
    this.#underWay.push(taken);
    return taken;
  }

  /** True when the checkpoint moved. */
  finish(taken: Taken): boolean {
    taken.isDone = true;
    const before = this.done;
    while (this.#underWay[0]?.isDone === true) this.done = this.#underWay.shift()!.endNumber;
    return this.done !== before;
  }
}
