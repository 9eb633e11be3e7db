import type { MemberLog } from '../../../core/cluster/api.ts';
import { SkuaError } from '../../../core/base/errors.ts';
import type { Clock } from '../../../core/ports/clock.ts';
import type { Epoch } from '../../../core/ports/peers.ts';
import { decodeText, encodeText } from '../../../core/base/text.ts';
import type { Random } from '../../support/random.ts';

/** What the bucket holds: who was first at a number has it. */
export interface SharedLog {
  readonly commits: { readonly epoch: Epoch | null; readonly by: string }[];
}

export interface BucketLink {
  /** The bucket does not answer this member. */
  isCut: boolean;
  /** Milliseconds of a way to the bucket, or back. */
  readonly latencyMs: () => number;
  /** Probability that a reply is lost. */
  readonly loss: () => number;
}

const BYTES_A_COMMIT = 100;
/** After this a request to a bucket that does not answer is given up. */
export const BUCKET_TIMEOUT_MS = 2_000;
const LEAD_TRIES_MAX = 30;

/**
 * A log without records: commits are epochs or nothing. As the real one it appends at the next free number and takes in
 * what others put there first.
 */
export class FakeCopy implements MemberLog {
  readonly logId = '00000000-0000-4000-8000-000000000001';
  readonly #shared: SharedLog;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #link: BucketLink;
  readonly #onEpoch: ((epoch: Epoch) => void)[] = [];
  readonly #onApplied: (() => void)[] = [];
  applied = 0;
  epoch: Epoch | null = null;
  isCaughtUp = true;
  trouble: SkuaError | null = null;
  asked = 0;
  #silentSinceMs: number | null = null;
  #provedMs = -Infinity;
  #held: Promise<void> = Promise.resolve();
  #committing: Promise<void> = Promise.resolve();

  constructor(shared: SharedLog, clock: Clock, random: Random, link: BucketLink) {
    this.#shared = shared;
    this.#clock = clock;
    this.#random = random;
    this.#link = link;
    this.#take(shared.commits.length);
  }

  get end(): number {
    return this.applied * BYTES_A_COMMIT;
  }
  get bucketSilentMs(): number {
    return this.#silentSinceMs === null ? 0 : this.#clock.monotonicMs() - this.#silentSinceMs;
  }
  get lag(): { readonly commits: number; readonly bytes: number } {
    return { commits: this.#shared.commits.length - this.applied, bytes: 0 };
  }

  onEpoch(listener: (epoch: Epoch) => void): void {
    this.#onEpoch.push(listener);
  }
  onApplied(listener: () => void): void {
    this.#onApplied.push(listener);
  }

  async lead(instanceId: string, after: number): Promise<Epoch> {
    for (let tries = 0; tries < LEAD_TRIES_MAX; tries++) {
      await this.refresh();
      if ((this.epoch?.number ?? -1) !== after)
        throw new SkuaError('epoch_lost', 'Another epoch is the newest one.', {});
      const number = this.applied + 1;
      const epoch: Epoch = {
        number: after + 1,
        position: this.end,
        id: `00000000-0000-4000-9000-${String(number).padStart(12, '0')}`,
        leaderInstanceId: instanceId,
      };
      if (await this.#create(number, epoch, instanceId)) {
        this.#take(number);
        return epoch;
      }
    }
    throw new SkuaError('commit_contended', 'Others were always faster.', {});
  }

  async hold(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    this.#held = new Promise((resolve) => {
      signal.addEventListener('abort', () => {
        resolve();
      });
    });
    await this.#committing;
  }

  /** As a client's append at this member: a commit that is no epoch. */
  async commit(by: string): Promise<void> {
    await this.#held;
    const committing = this.#commit(by);
    this.#committing = committing.catch(() => {});
    await committing;
  }

  async #commit(by: string): Promise<void> {
    for (let tries = 0; tries < LEAD_TRIES_MAX; tries++) {
      const number = this.applied + 1;
      if (await this.#create(number, null, by)) {
        this.#take(number);
        return;
      }
      await this.refresh();
    }
  }

  async refresh(): Promise<void> {
    const startMs = this.#clock.monotonicMs();
    await this.#ask(() => this.#shared.commits.length).then((length) => {
      this.#take(length);
    });
    this.#provedMs = startMs;
  }

  async confirmFresh(ageMs: number): Promise<void> {
    if (this.#clock.monotonicMs() - this.#provedMs > ageMs) await this.refresh();
  }

  async takePushed(bytes: Uint8Array): Promise<number> {
    const { from, to } = JSON.parse(decodeText(bytes)) as { from: number; to: number };
    if (from <= this.applied + 1) this.#take(Math.min(to, this.#shared.commits.length));
    return this.applied;
  }

  recent(from: number, _bytesMax: number): Uint8Array | null {
    if (from <= this.applied - 1_000) return null;
    return from > this.applied ? new Uint8Array(0) : encodeText(JSON.stringify({ from, to: this.applied }));
  }

  async waitForCommit(number: number, signal: AbortSignal): Promise<boolean> {
    while (this.applied < number && !signal.aborted) {
      await new Promise<void>((resolve) => {
        this.#onApplied.push(resolve);
        signal.addEventListener('abort', () => {
          resolve();
        });
      });
    }
    return this.applied >= number;
  }

  #take(upTo: number): void {
    while (this.applied < upTo) {
      const { epoch } = this.#shared.commits[this.applied]!;
      this.applied++;
      if (epoch !== null) {
        this.epoch = epoch;
        for (const listener of this.#onEpoch) listener(epoch);
      }
    }
    for (const listener of this.#onApplied.splice(1)) listener();
    this.#onApplied[0]?.();
  }

  async #create(number: number, epoch: Epoch | null, by: string): Promise<boolean> {
    return this.#ask(() => {
      if (this.#shared.commits.length !== number - 1) return false;
      this.#shared.commits.push({ epoch, by });
      return true;
    });
  }

  /** One request: a way there, the effect, a way back, each of which can be lost. */
  async #ask<T>(effect: () => T): Promise<T> {
    const startMs = this.#clock.monotonicMs();
    this.asked++;
    await this.#clock.sleep(this.#link.latencyMs());
    if (this.#link.isCut) return this.#silent(startMs, 'storage_unreachable');
    const result = effect();
    await this.#clock.sleep(this.#link.latencyMs());
    if (this.#link.isCut || this.#random.chance(this.#link.loss()))
      return this.#silent(startMs, 'commit_outcome_unknown');
    this.#silentSinceMs = null;
    return result;
  }

  async #silent(startMs: number, code: 'storage_unreachable' | 'commit_outcome_unknown'): Promise<never> {
    await this.#clock.sleep(BUCKET_TIMEOUT_MS);
    this.#silentSinceMs ??= startMs;
    throw new SkuaError(code, 'The bucket does not answer.', {});
  }
}
