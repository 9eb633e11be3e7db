import { toHex } from '../../base/hex.ts';
import { pageOfKind } from '../../ports/object-kinds.ts';
import { FAILURES_MAX, type SharedFailures } from '../../ports/shared-failures.ts';
import { encodeText } from '../../base/text.ts';
import type { ObjectWorld } from '../api.ts';
import { FAILURES, FAILURES_PREFIX } from '../format/object-keys.ts';

const MINUTE_MS = 60_000;
/**
 * Requests that one process makes for this in a minute: what an attacker can make the store cost. Where they are used
 * up, a pair that fails is locked for this process at once, so that noise about other users buys no guesses at one.
 */
export const FAILURE_REQUESTS_A_MINUTE = 60;
/**
 * Lists and creates for one failure, where others count the same pair at the same moment; then the pair is locked here.
 */
const ROUNDS_MAX = 3;
/** Hex digits that stand for a pair. */
const PAIR_DIGITS = 32;
const NOTHING = new Uint8Array(0);

/**
 * A failure is an empty object `failures/<minute>/<pair>/<number>`, created conditionally: as many as are allowed can
 * be created, by whomever. So the failures of a pair cost requests only when they happen (mostly one each), and a right
 * password costs none. The minutes are those of the wall clock, as processes share no other. Names and addresses are
 * not told: the pair is a digest.
 *
 * What that leaves: a process learns that a pair is locked by its own first failure. With n processes a minute so
 * allows FAILURES_MAX guesses and n more, instead of n times as many: a failure either is counted or locks the pair for
 * its process.
 */
export class ObjectFailures implements SharedFailures {
  readonly #world: Pick<ObjectWorld, 'objects' | 'clock' | 'digests' | 'log'>;
  #minute = -1;
  #requests = 0;
  /** By pair, the number that is free as far as this process knows; of the present minute only. */
  readonly #next = new Map<string, number>();

  constructor(world: Pick<ObjectWorld, 'objects' | 'clock' | 'digests' | 'log'>) {
    this.#world = world;
  }

  async add(name: string, place: string): Promise<boolean> {
    const { clock, log } = this.#world;
    const minute = Math.floor(clock.nowMs() / MINUTE_MS);
    if (minute !== this.#minute) {
      this.#minute = minute;
      this.#requests = 0;
      this.#next.clear();
    }
    const folder = `${FAILURES_PREFIX}${minute}/${this.#pairOf(name, place)}/`;
    try {
      return await this.#count(folder);
    } catch (error) {
      // The process still counts by itself, and a process that can't reach the store reads no users either.
      log.warn('a failed login could not be counted across processes', { error: String(error) });
      return false;
    }
  }

  async #count(folder: string): Promise<boolean> {
    const { objects } = this.#world;
    for (let round = 0; round < ROUNDS_MAX; round++) {
      const number = this.#next.get(folder) ?? 0;
      if (number >= FAILURES_MAX || !this.#mayAsk()) return true;
      const outcome = await objects.create(folder + String(number), NOTHING);
      if (outcome === 'created') {
        this.#next.set(folder, number + 1);
        return number + 1 >= FAILURES_MAX;
      }
      if (!this.#mayAsk()) return true;
      const { objects: taken } = await pageOfKind(objects, FAILURES, { within: folder });
      this.#next.set(folder, Math.max(number + 1, taken.length));
    }
    // So many fail at once for one pair only where guesses are made. A failure that is not counted must not be the next
    // guess's ticket.
    return true;
  }

  #mayAsk(): boolean {
    return ++this.#requests <= FAILURE_REQUESTS_A_MINUTE;
  }

  #pairOf(name: string, place: string): string {
    const digest = this.#world.digests.sha256();
    digest.update(encodeText(`${place}\n${name}`));
    return toHex(digest.finish()).slice(0, PAIR_DIGITS);
  }
}
