import type { ClusterMember, HeldWrite } from '../core/cluster/api.ts';
import { SkuaError } from '../core/base/errors.ts';
import { enter, requireLogin } from './admission.ts';
import { authenticate, findSession, provedCaller } from './authentication.ts';
import { readBody } from './http/body.ts';
import type { EpochGuard, RequestParts } from './http/cluster-feature.ts';
import { goneOf } from './http/context.ts';
import type { App, Call, ClusterFeature, Reply } from './http/context.ts';
import {
  FORWARDED_HEADER,
  forwardedText,
  isForOthers,
  LOG_END_HEADER,
  NOT_LEADER_HEADER,
  NOT_LEADER_STATUS,
} from './http/forwarded.ts';
import { requiresLeader } from './http/http-headers.ts';
import type { DecisionsOf, Decided } from './http/decided-by.ts';
import { empty } from './http/reply.ts';
import { baseOf } from './http/url.ts';

/**
 * The leader itself gives up before (a commit whose outcome is not known ends after 20 s): longer silence shows nothing
 * more.
 */
const ANSWER_MS = 30_000;
/** When a request arrived is given in such steps, so that the header is the same for many. */
const AT_STEP_MS = 200;

/**
 * Headers of the connection alone (RFC 9110 section 7.6.1), or of what the member that was asked decides: its name
 * (`base` passes that on), the allowed origins (`origin`), and how replies are packed.
 */
const LEFT_OUT: ReadonlySet<string> = new Set([
  'host',
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'content-length',
  'expect',
  'accept-encoding',
  'origin',
]);
/** How headers between members begin; a request's own of these names are not passed on. */
const OURS = 'skua-';

/** How far a request has come that is passed on. */
export interface Passing {
  /** The caller is known, and may be named in the audit. */
  isKnown: boolean;
  /** From when on the request was here as a whole; null before. */
  held: HeldWrite | null;
}

/**
 * What a member does with requests that another one is to decide as they came (core/cluster/README.md, rules 12 and
 * 13).
 */
export class Forwarding {
  readonly #app: App;
  readonly #cluster: ClusterFeature;
  readonly #placeOf: DecisionsOf;

  constructor(app: App, cluster: ClusterFeature, placeOf: DecisionsOf) {
    this.#app = app;
    this.#cluster = cluster;
    this.#placeOf = placeOf;
  }

  /** False for what is decided here in any case. */
  mayPassOn(call: Call): boolean {
    if (call.forwarded !== null) return false;
    return isForLeader(call) || (!mayNotChange(call) && this.#cluster.ask.leader !== null);
  }

  /**
   * The answer of the member that leads, or the redirection to it; null where the request is to be decided here. A
   * caller without the right is refused before the body is read. Errors: as `authenticate`, `enter` and `readBody`;
   * `commit_outcome_unknown`, `no_leader`.
   */
  async answer(call: Call, passing: Passing): Promise<Reply | null> {
    const placed = await this.#placeOf(call);
    if (placed === null) return null;
    if (isForLeader(call)) return this.#leaderOnly(call, placed);
    return placed.place !== 'leader' || this.#cluster.ask.leader === null ? null : this.#forward(call, placed, passing);
  }

  /** Rule 12 of core/cluster/README.md. */
  async #leaderOnly(call: Call, { place, methods }: Decided): Promise<Reply | null> {
    call.methods = methods;
    const leader = await this.#cluster.ask.leaderElsewhere(place === 'here');
    if (leader === null) return null;
    const moved = empty(call, 307, 'Temporary Redirect');
    return {
      ...moved,
      headers: { ...moved.headers, location: `${this.#cluster.forward.scheme}://${hostOf(leader)}${targetOf(call)}` },
    };
  }

  async #forward(
    call: Call,
    { methods, access, audit, arrive = readBody }: Decided,
    passing: Passing,
  ): Promise<Reply | null> {
    call.methods = methods;
    await unlessUnknown(async () => {
      call.principal = await authenticate(call, this.#app);
      passing.isKnown = true;
      requireLogin(call, this.#app, access);
      await enter(call, this.#app, { access, ...(audit !== undefined && { audit }) });
    });
    const body = await arrive(call, this.#app);
    if (!(body instanceof Uint8Array)) return body;
    const held = (passing.held = this.#cluster.patience.begin(goneOf(call, this.#app)));
    // What is done the leader records in the audit.
    call.audited = null;
    call.body = body;
    await findSession(call, this.#app);
    return this.#cluster.ask.decided<Reply>({
      isRepeatable: false,
      expire: (asked) => {
        const refusal = held.refusal();
        if (refusal !== null) throw asked === null ? refusal : asked(refusal);
      },
      send: async (leader, epoch, signal) => {
        const reply = await this.#cluster.forward.send(
          leader,
          this.#requestOf(call, leader, epoch, body, held),
          ANSWER_MS,
          signal,
        );
        const { [LOG_END_HEADER]: end, ...headers } = reply.headers;
        return headers[NOT_LEADER_HEADER] === undefined ? { answer: { ...reply, headers }, logEnd: Number(end) } : null;
      },
    });
  }

  /** Decides here, whichever member leads, a request that was held before. */
  here<T>(held: HeldWrite, work: () => T): T {
    return this.#cluster.fence.run(null, held, work);
  }

  /** Whole, as it arrived, and with the caller's own credentials. */
  #requestOf(call: Call, leader: ClusterMember, epoch: number, body: Uint8Array, { ageMs }: HeldWrite): RequestParts {
    const { request } = call;
    const { server } = this.#app;
    const connection = request.headers.get('connection');
    const named =
      connection === null || connection === 'keep-alive'
        ? []
        : connection
            .toLowerCase()
            .split(',')
            .map((name) => name.trim());
    const headers: Record<string, string> = { host: hostOf(leader) };
    // A session counts where the browser has brought it, and goes on as what it proves; senders may send what they
    // like.
    const hasCookie = call.branch.isForSenders;
    for (const [name, value] of request.headers)
      if ((name !== 'cookie' || hasCookie) && !LEFT_OUT.has(name) && !name.startsWith(OURS) && !named.includes(name))
        headers[name] = value;
    const { aheadMs } = leader;
    headers[FORWARDED_HEADER] = forwardedText({
      epoch,
      ...(aheadMs != null && {
        atMs: Math.floor((this.#app.world.clock.nowMs() + aheadMs - ageMs) / AT_STEP_MS) * AT_STEP_MS,
      }),
      base: baseOf(call),
      address: server.addressOf?.(request) ?? null,
      isLocal: server.isLocal?.(request) ?? false,
      caller: provedCaller(call, this.#app),
      certificate: server.certificateOf?.(request) ?? null,
      ...(call.session !== null && { session: call.session.proof }),
    });
    return { method: call.method, target: targetOf(call), headers, body };
  }
}

/**
 * Judges the caller of a request that is passed on, by the users in this member's replica; the leader judges the
 * caller again. Where that replica can't be read, as while it is opened, the leader alone judges.
 */
async function unlessUnknown(judge: () => unknown): Promise<void> {
  try {
    await judge();
  } catch (error) {
    if (!isForOthers(error)) throw error;
  }
}

/**
 * What a leader answers to a request that it does not decide: of its own, so that no answer to a client can be taken
 * for it.
 */
export function notLeaderReply(): Reply {
  return {
    status: NOT_LEADER_STATUS,
    statusText: 'Misdirected Request',
    headers: { 'content-length': '0', [NOT_LEADER_HEADER]: 'true' },
    body: null,
  };
}

/**
 * What a request that another member has passed on failed with, as its client is to be told; null where that member is
 * to decide it, since nothing was done here.
 */
export function failedFor(guard: EpochGuard | null, error: unknown): { readonly error: unknown } | null {
  if (guard === null || !isForOthers(error)) return { error };
  if (!guard.hasWritten) return null;
  return {
    error: new SkuaError(
      'commit_outcome_unknown',
      'The leader changed during the request, and part of it was carried out: check the result and send it again.',
      {},
      error,
    ),
  };
}

/** The client asks for the leader alone. */
function isForLeader({ branch, request }: Call): boolean {
  return branch.heedsRequiresLeader && requiresLeader(request.headers);
}

/** Reads are answered here, but for those of what the leader alone has. */
function mayNotChange({ method, branch }: Call): boolean {
  return (method === 'GET' || method === 'OPTIONS') && !branch.hasReadsOfLeader;
}

function targetOf({ url, origin }: Call): string {
  return url.slice(origin.length);
}

function hostOf({ node: { address, port } }: ClusterMember): string {
  return `${address.includes(':') ? `[${address}]` : address}:${port}`;
}
