import { SharedLimit } from '../../core/base/shared-limit.ts';

/** How many begin in a turn of the process, some milliseconds of work. */
const PER_TURN = 64;
/**
 * Of those whose connections have been answered with nothing but refusals of late: so many in a millisecond, a tenth of
 * a core.
 */
const REFUSED_PER_MS = 2;
/** So many refusals in a row make a connection one of those. */
const REFUSED_IN_ROW = 16;
/** How many may wait for their turns, some kilobytes each in the library, of all addresses, which share them. */
const WAITING_MAX = 20_000;

/** A connection whose streams begin. */
export interface Beginner {
  readonly address: string;
  /** Streams that were refused since one was not. */
  refusedInRow: number;
}

interface Lane {
  /** So many begin in a turn. */
  readonly perTurn: number;
  begun: number;
  /** What waits, by connection; the connections in the order of their turns. */
  readonly waiting: Map<Beginner, Array<() => void>>;
  isDue: boolean;
}

/**
 * One read of a socket may bring a hundred streams, and a turn of the process as many reads as there are connections.
 * So a turn begins only so many of them; the others wait, and then each connection has one in turn. Those of
 * connections on which everything was refused of late wait apart, for a small part of the time: a client that comes
 * again at once when refused waits behind itself alone, is answered as any client is, and is never hung up on.
 */
export class Beginnings {
  readonly #usual: Lane = { perTurn: PER_TURN, begun: 0, waiting: new Map(), isDue: false };
  readonly #refused: Lane = { perTurn: REFUSED_PER_MS, begun: 0, waiting: new Map(), isDue: false };
  readonly #waiting: SharedLimit;
  #isStopping = false;

  constructor(waitingMax = WAITING_MAX) {
    this.#waiting = new SharedLimit(waitingMax);
  }

  /** How many wait. */
  get waiting(): number {
    return this.#waiting.held;
  }

  /** Whether so many more streams of an address may wait. */
  hasRoom(address: string, count: number): boolean {
    return this.#waiting.admits(address, count);
  }

  /** Whether a stream may begin at once; else it has to wait. */
  tryBegin(beginner: Beginner): boolean {
    const lane = this.#laneOf(beginner);
    if (lane.begun >= lane.perTurn || lane.waiting.size > 0) return false;
    lane.begun++;
    // A usual one need not know of turns in which less is begun.
    if (lane === this.#refused) this.#goOn(lane);
    return true;
  }

  /** Calls `begin` in a later turn, unless the connection is forgotten before that. False where too many wait. */
  wait(beginner: Beginner, begin: () => void): boolean {
    if (!this.#waiting.tryTake(beginner.address)) return false;
    this.#add(beginner, [begin]);
    return true;
  }

  /** No connection that will be refused anyway is made to wait any more. */
  stop(): void {
    this.#isStopping = true;
  }

  /** The connection has ended. */
  forget(beginner: Beginner): void {
    for (const { waiting } of [this.#usual, this.#refused]) {
      const dropped = waiting.get(beginner);
      if (dropped === undefined) continue;
      waiting.delete(beginner);
      this.#waiting.giveBack(beginner.address, dropped.length);
    }
  }

  #laneOf({ refusedInRow }: Beginner): Lane {
    return refusedInRow < REFUSED_IN_ROW || this.#isStopping ? this.#usual : this.#refused;
  }

  #add(beginner: Beginner, begins: Array<() => void>): void {
    const lane = this.#laneOf(beginner);
    const before = lane.waiting.get(beginner);
    if (before === undefined) lane.waiting.set(beginner, begins);
    else before.push(...begins);
    this.#goOn(lane);
  }

  #goOn(lane: Lane): void {
    if (lane.isDue) return;
    lane.isDue = true;
    if (lane === this.#usual) setImmediate(() => this.#turn(lane));
    else setTimeout(() => this.#turn(lane), 1);
  }

  #turn(lane: Lane): void {
    lane.isDue = false;
    lane.begun = 0;
    // What is put behind the others is come to again.
    for (const [beginner, begins] of lane.waiting) {
      if (lane.begun >= lane.perTurn) break;
      lane.waiting.delete(beginner);
      if (this.#laneOf(beginner) === lane) {
        lane.begun++;
        this.#waiting.giveBack(beginner.address);
        begins.shift()!();
      }
      if (begins.length > 0) this.#add(beginner, begins);
    }
    if (lane.waiting.size > 0) this.#goOn(lane);
  }
}
