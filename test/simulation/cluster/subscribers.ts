import { isSkuaError } from '../../../core/base/errors.ts';
import type { AllPosition, SubscriptionMessage } from '../../../core/streams/api.ts';
import { PASSING } from './codes.ts';
import type { SimMember } from './sim-member.ts';
import { KEPT } from './truth.ts';
import type { World } from './world.ts';

const GONE = Symbol('the process has ended');

/**
 * Reads `$all` at a member from the beginning of the log, and again behind the last event it saw, there or at another
 * member, when the subscription ends. It must see every event that no scavenge may remove, once and in order.
 */
export class Subscriber {
  readonly #world: World;
  readonly #members: readonly SimMember[];
  readonly #name: string;
  #member: SimMember;
  #after: AllPosition | 'start' = 'start';
  #seen = new Set<string>();

  constructor(world: World, members: readonly SimMember[], member: SimMember) {
    this.#world = world;
    this.#members = members;
    this.#member = member;
    this.#name = `the subscriber that began at ${member.address}`;
  }

  async run(): Promise<void> {
    for (;;) {
      await this.#world.wait(this.#world.random.int(50, 1_000));
      if (this.#world.random.chance(0.1)) this.#member = this.#world.random.pick(this.#members);
      const { opened, run } = this.#member;
      if (opened === null || !opened.log.isCaughtUp) continue;
      const ending = new AbortController();
      try {
        await this.#follow(
          opened.store.subscribeToAll({ after: this.#after, signal: ending.signal })[Symbol.asyncIterator](),
          run.ended,
        );
      } catch (error) {
        if (!isSkuaError(error) || !PASSING.includes(error.code))
          this.#world.judge.problem(
            `${this.#name} was ended at ${run.process.name}: ${String((error as Error).stack)}`,
          );
      }
      ending.abort();
    }
  }

  async #follow(messages: AsyncIterator<SubscriptionMessage<AllPosition>>, ended: Promise<void>): Promise<void> {
    const { run } = this.#member;
    for (;;) {
      const next = await Promise.race([messages.next(), ended.then(() => GONE)]);
      if (next === GONE || run.process.isDead) return;
      const { done, value } = next as IteratorResult<SubscriptionMessage<AllPosition>>;
      if (done === true) return;
      this.#world.judge.count('messages');
      if (value.kind !== 'event') continue;
      const { position, id, preparePosition, stream, number } = value.event;
      const { judge } = this.#world;
      if (this.#after !== 'start' && position <= this.#after.commit)
        judge.problem(
          `${this.#name} is sent ${number} of ${stream} at ${position} by ${run.process.name}, behind ${this.#after.commit}`,
        );
      if (judge.truth.byPosition.get(position)?.id !== id)
        judge.problem(
          `${this.#name} is sent ${number} of ${stream} at ${position} by ${run.process.name}, which the log does not have`,
        );
      for (const member of [this.#member])
        if (member.removed.has(position))
          judge.problem(
            `${this.#name} is sent ${number} of ${stream} at ${position} by ${run.process.name}, where it had been removed`,
          );
      this.#after = { commit: position, prepare: preparePosition };
      this.#seen.add(id);
    }
  }

  /** At the end everything has been seen that everybody keeps. */
  check(): void {
    const { judge } = this.#world;
    for (const { id, position, prepare } of judge.truth.records) {
      if (prepare !== null && KEPT.includes(prepare.stream) && !this.#seen.has(id))
        judge.problem(`${this.#name} has not seen ${prepare.stream}#${prepare.number}@${position}`);
    }
  }
}
