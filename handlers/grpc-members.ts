import { ByteBudget } from '../core/byte-budget.ts';
import type { ClusterMember, HeldWrite } from '../core/cluster/api.ts';
import type { EventStore } from '../core/streams/api.ts';
import { Forwarding } from './forward.ts';
import { AppendsElsewhere } from './grpc-appends.ts';
import type { App, Call, ClusterFeature } from './http/context.ts';
import type { Ending, GrpcMethod, GrpcTransport } from './grpc/call.ts';
import { answerOf, ArrivedCall, MessageBlock } from './grpc/passed-on.ts';
import { notLeader as leaderIsElsewhere } from './grpc/errors.ts';
import { tooLarge } from './grpc/streams/limits.ts';

/** Bytes of calls that all of them together may hold here until the leader has answered. */
const HELD_BYTES_MAX = 134_217_728;

/** What a member does with calls that another one is to decide (grpc-api.md section 1.5; ARCHITECTURE.md, "The cluster", rules 12 and 13). */
export class CallsElsewhere {
  readonly #app: App;
  readonly #forwarding: Forwarding;
  readonly #budget: ByteBudget;

  constructor(app: App, cluster: ClusterFeature) {
    this.#app = app;
    this.#forwarding = new Forwarding(app, cluster, () => null);
    this.#budget = new ByteBudget({ of: 'calls for the leader', totalBytes: HELD_BYTES_MAX, reserveBytes: HELD_BYTES_MAX / 4, smallBytes: 262_144, waitersMax: 1_024, waitMs: 10_000 }, app.world.clock);
  }

  /** Throws `not-leader` with the address of the member that leads, where the call is for that one alone. What it reads there is the newest state. Errors: `no_leader`. */
  async requireLeader({ place, notLeader = leaderIsElsewhere }: GrpcMethod, call: Call): Promise<void> {
    if (place === 'node' || (place !== 'leader-only' && !requiresLeader(call))) return;
    const leader = await this.#forwarding.leaderElsewhere(place === 'here' || place === 'leader-only');
    if (leader !== null) throw notLeader(leader.node);
  }

  /** Whether a call is for the member that leads, and is passed on to that one. */
  passesOn({ place }: GrpcMethod, call: Call): boolean {
    return (place === 'append' || place === 'leader') && !requiresLeader(call) && this.leader !== null;
  }

  /** How a call ended at the member that leads, whose messages have been sent on; or the call with all that has arrived of it, and since when, where it is to be decided here after all. */
  async passOn(method: GrpcMethod, call: Call, transport: GrpcTransport): Promise<Ending | { readonly arrived: ArrivedCall; readonly held: HeldWrite }> {
    const share = this.#budget.share(null, call.countedAs);
    try {
      const { bodyBytesMax } = this.#app.options;
      const block = new MessageBlock();
      for (;;) {
        const got = transport.read(method.isUnary);
        const message = got instanceof Promise ? await got : got;
        if (message === null) break;
        block.add(message);
        if (block.length > bodyBytesMax) throw tooLarge(bodyBytesMax);
        if (!share.add(block.length - share.heldBytes)) await share.room();
      }
      const held = this.#forwarding.held(call);
      const reply = await this.#forwarding.passOn(call, method.place === 'append', block.bytes, held);
      if (reply === null) return { arrived: new ArrivedCall(transport, block.bytes, (sent) => transport.send(sent)), held };
      const { ending, block: answer } = answerOf(reply);
      if (answer.length > 0) await transport.send(answer);
      return ending;
    } finally {
      share.close();
    }
  }

  /** As `Forwarding.here`. */
  here<T>(held: HeldWrite, work: () => T): T { return this.#forwarding.here(held, work); }

  /** The member that decides what is not decided here. */
  get leader(): ClusterMember | null { return this.#forwarding.elsewhere; }

  /** As `EventStore.append`, for one call with many of them, wherever each is to be decided. */
  appendsOf(call: Call): EventStore['append'] {
    let appends: AppendsElsewhere | null = null;
    return (...append) => (appends ??= new AppendsElsewhere({ call, app: this.#app, forwarding: this.#forwarding, budget: this.#budget, isForLeader: requiresLeader(call) })).append(...append);
  }
}

function requiresLeader({ request }: Call): boolean {
  return request.headers.get('requires-leader')?.toLowerCase() === 'true';
}
