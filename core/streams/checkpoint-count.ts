import type { AllPosition, CheckpointRule, SubscriptionCheckpoint } from './api.ts';

/** Wanted events with which a window of the history ends early. */
const WINDOW_MATCHES_MAX = 32;

interface Count {
  isLive: boolean;
  /** Events since the last checkpoint; of the history those of complete windows, until all of it has been read. */
  counted: number;
  inWindow: number;
  matches: number;
  startCommit: number;
  startPrepare: number;
  /** -1 where the window holds nothing wanted so far. */
  lastCommit: number;
  lastPrepare: number;
}

/**
 * Counts what a filtered subscription looks at, and finds the positions of its checkpoints. Live, that is each event
 * that completes the interval. In the history it is a window that does: its last wanted event, or else its first event,
 * which no subscriber wants to see again. What the last window, which is not complete, has seen counts for the first
 * checkpoint that is live.
 */
export class CheckpointCount {
  /** Checkpoints of the part that is being read. */
  found: SubscriptionCheckpoint<AllPosition>[] = [];
  readonly #rule: CheckpointRule;
  #count: Count = {
    isLive: false,
    counted: 0,
    inWindow: 0,
    matches: 0,
    startCommit: 0,
    startPrepare: 0,
    lastCommit: -1,
    lastPrepare: 0,
  };
  #before: Count = this.#count;
  /** The counts before each wanted event of the part; null where the part can't be cut. */
  #beforeMatches: Count[] | null = null;

  constructor(rule: CheckpointRule) {
    this.#rule = rule;
  }

  /** A part begins. `mayBeCut`: it may turn out to end before one of its events. */
  begin(mayBeCut: boolean): void {
    this.found = [];
    this.#before = { ...this.#count };
    this.#beforeMatches = mayBeCut ? [] : null;
  }

  /** The part has to be read again. */
  rewind(): void {
    this.found = [];
    this.#count = this.#before;
  }

  /** The part has ended before the wanted event with this index. */
  cut(index: number): void {
    this.#count = this.#beforeMatches![index]!;
    this.found = this.found.filter(({ behind }) => behind <= index);
  }

  /** The history has been read. */
  goLive(): void {
    const count = this.#count;
    count.isLive = true;
    count.counted += count.inWindow;
  }

  /** An event at this position was looked at; with it so many of the part are wanted. */
  saw(commit: number, prepare: number, isWanted: boolean, behind: number): void {
    const count = this.#count;
    const { windowEvents, intervalEvents } = this.#rule;
    if (isWanted) this.#beforeMatches?.push({ ...count });
    if (count.isLive) {
      if (++count.counted < intervalEvents) return;
      count.counted = 0;
      this.found.push({ behind, after: { commit, prepare } });
      return;
    }
    if (count.inWindow++ === 0) {
      count.startCommit = commit;
      // As the reference has it. Among the events of an explicit transaction the prepare half decides which.
      count.startPrepare = prepare === commit ? 0 : prepare;
      count.lastCommit = -1;
      count.matches = 0;
    }
    if (isWanted) {
      count.matches++;
      count.lastCommit = commit;
      count.lastPrepare = prepare;
    }
    if (count.inWindow < windowEvents && count.matches < WINDOW_MATCHES_MAX) return;
    count.counted += count.inWindow;
    count.inWindow = 0;
    if (count.counted < intervalEvents) return;
    count.counted %= intervalEvents;
    this.found.push({
      behind,
      after:
        count.lastCommit < 0
          ? { commit: count.startCommit, prepare: count.startPrepare }
          : { commit: count.lastCommit, prepare: count.lastPrepare },
    });
  }
}
