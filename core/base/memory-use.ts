/** Memory that many read, and that is written over once none of them looks at it. */
export interface SharedMemory {
  /** Leases that are not over. */
  leases: number;
  /** Somebody has views of it for as long as they like: it is never written over. */
  isKept: boolean;
}

/** What a reader does with the views that it is given. */
export interface MemoryUse {
  /** The reader is going to have a view of this memory. */
  sees(memory: SharedMemory): void;
}

/** The reader may keep views for good. What says nothing else has this. */
export const KEPT: MemoryUse = {
  sees(memory) {
    memory.isKept = true;
  },
};

/** The reader has forgotten them before anything else runs. */
export const LOOKED_AT: MemoryUse = { sees() {} };

/**
 * The reader says when it has let go of the views that it got, such as those of one page. One that never does keeps the
 * memory, as `KEPT` does, and does no harm.
 */
export class MemoryLease implements MemoryUse {
  /** What was seen, again where something else was in between. */
  readonly #held: SharedMemory[] = [];
  #last: SharedMemory | null = null;

  sees(memory: SharedMemory): void {
    if (memory === this.#last) return;
    this.#last = memory;
    this.#held.push(memory);
    memory.leases++;
  }

  /** Nothing looks any more at what was read under this lease so far. */
  release(): void {
    for (const memory of this.#held) memory.leases--;
    this.#held.length = 0;
    this.#last = null;
  }
}
