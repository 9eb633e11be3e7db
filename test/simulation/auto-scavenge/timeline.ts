interface Moment {
  readonly at: number;
  readonly order: number;
  readonly run: () => void;
  readonly isQuiet: boolean;
  isCancelled: boolean;
}

/** Simulated time: what is to happen, in order. Between two moments all promises that can go on do so. */
export class Timeline {
  now = 0;
  #order = 0;
  readonly #heap: Moment[] = [];

  /** Gives what cancels it. After a quiet moment, which no promise waits for, time goes on at once. */
  in(ms: number, run: () => void, isQuiet = false): () => void {
    const moment: Moment = { at: this.now + ms, order: this.#order++, run, isQuiet, isCancelled: false };
    this.#push(moment);
    return () => {
      moment.isCancelled = true;
    };
  }

  async runTo(end: number): Promise<void> {
    for (let next = this.#heap[0]; next !== undefined && next.at <= end; next = this.#heap[0]) {
      this.#pop();
      if (next.isCancelled) continue;
      this.now = next.at;
      next.run();
      if (!next.isQuiet)
        await new Promise((resolve) => {
          process.nextTick(resolve);
        });
    }
    this.now = end;
  }

  #push(moment: Moment): void {
    const heap = this.#heap;
    let at = heap.push(moment) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!isBefore(moment, heap[parent]!)) break;
      heap[at] = heap[parent]!;
      at = parent;
    }
    heap[at] = moment;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop()!;
    if (heap.length === 0) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child++;
      if (!isBefore(heap[child]!, last)) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = last;
  }
}

function isBefore(a: Moment, b: Moment): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}
