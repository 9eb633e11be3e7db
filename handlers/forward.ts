import type { ClusterMember, HeldWrite } from '../core/cluster/api.ts';
import { isSkuaError, SkuaError } from '../core/errors.ts';
import { enter, requireLogin } from './admission.ts';
import { authenticate, findSession, provedCaller } from './authentication.ts';
import { readBody } from './http/body.ts';
import type { Passage, ReplyParts, RequestParts } from './http/cluster.ts';
import { goneOf } from './http/context.ts';
import type { App, Call, ClusterFeature, Reply } from './http/context.ts';
import { FORWARDED_HEADER, forwardedText, isForOthers, LOG_END_HEADER, NOT_LEADER_HEADER, NOT_LEADER_STATUS } from './http/forwarded.ts';
import { changesOf, EndWaits, within } from './http/cluster-waits.ts';
import type { Changes } from './http/cluster-waits.ts';
import { requiresLeader } from './http/headers.ts';
import type { PlacesOf, Placed } from './http/places.ts';
import { isIngestPath, isSubscriptionPath } from './http/presence.ts';
import { empty } from './http/reply.ts';
import { baseOf } from './http/url.ts';
import { background } from '../core/background.ts';

/** For so long a member looks for the leader that decides a request, half of its patience at most, and for the epoch that settles what became of one, in milliseconds. */
export const DEADLINE_MS = 5_000;
/** The leader itself gives up before (a commit whose outcome is not known ends after 20 s): longer silence tells nothing more. */
export const ANSWER_MS = 30_000;
/** An append whose epoch has been succeeded gets so long to be answered by the old leader, before it is decided anew. */
export const SUCCEEDED_MS = 250;
/** A leader that is not heard any more, or that no longer leads, gets so long to answer what it was sent: it may only be slow, and its connection be made anew. */
export const UNHEARD_MS = 4_000;
/** Where it has not, and nobody has followed it in all that time, an epoch is waited for only so much longer. */
export const UNFOLLOWED_MS = 2_000;
/** When a request arrived is told in such steps, so that the header is the same for many. */
const AT_STEP_MS = 200;
/** While who leads and the newest epoch don't agree here, a request waits so long for the next word of either; then it is decided here. */
const UNSETTLED_MS = 1_000;
/** Between two questions to a member that says that it does not lead, where nothing changes meanwhile. */
const ASK_AGAIN_MS = 200;
/** An answer waits so long until this member has what the leader had written. */
export const OWN_WRITES_MS = 5_000;
/** A request that is for the leader alone waits so long for one, while there is none. */
export const LEADER_WAIT_MS = 2_000;
/** What a leader has proved at most so long ago counts as the newest state (rule 12). */
const FRESH_MS = 1_000;

const REQUESTS = 'eventstore_forwarded_requests_total';
const DURATION = 'eventstore_forwarded_request_duration_seconds';

/** How an attempt ended, as the metric names it. */
type Outcome = 'answered' | 'not-leader' | 'unreachable' | 'silent' | 'here' | 'unknown';

/** Of the connection alone (RFC 9110 section 7.6.1), or answered by the member that was asked: by which name it was (`base` tells that), who may ask (`origin`), and how replies are packed. */
const LEFT_OUT: ReadonlySet<string> = new Set([
  'host', 'connection', 'keep-alive', 'proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'content-length', 'expect', 'accept-encoding', 'origin',
]);
/** Why a member was not reached where that says nothing of it: others were before this request. */
const WAITED: ReadonlySet<unknown> = new Set(['time', 'given-up']);
/** Between members, whoever sends them. */
const OURS = 'skua-';

/** How far a request has come that is passed on. */
export interface Passing {
  /** Who calls is known, and may be told of to the audit. */
  isKnown: boolean;
  /** From when on the request was here as a whole; null before. */
  held: HeldWrite | null;
}

/** Requests that were sent to a leader in one epoch of its, and what ends the waiting for their answers. */
interface Sent {
  readonly instanceId: string;
  readonly appends: AbortController;
  readonly others: AbortController;
  isUnheard: boolean;
}

/** What a member does with requests that another one is to decide (ARCHITECTURE.md, "The cluster", rules 12 and 13). */
export class Forwarding {
  readonly #app: App;
  readonly #cluster: ClusterFeature;
  readonly #placeOf: PlacesOf;
  readonly #changes: Changes;
  readonly #ends: EndWaits;
  /** By the epoch in which they were sent. */
  readonly #sent = new Map<number, Sent>();

  constructor(app: App, cluster: ClusterFeature, placeOf: PlacesOf) {
    this.#app = app;
    this.#cluster = cluster;
    this.#placeOf = placeOf;
    this.#changes = changesOf(cluster, app.world.clock);
    this.#ends = new EndWaits(cluster.log, app.world.clock);
    cluster.log.onEpoch(({ number }) => background(this.#succeeded(number)));
    cluster.membership.onChange(() => this.#listen());
  }

  /** False for what is decided here in any case. */
  mayPassOn(call: Call): boolean {
    if (call.forwarded !== null) return false;
    return isForLeader(call) || (!mayNotChange(call) && this.#leader() !== null);
  }

  /**
   * The answer of the member that leads, or the redirection to it; null where the request is to be decided here. Who may not ask is refused before the body is read. Errors: as `authenticate`, `enter` and
   * `readBody`; `commit_outcome_unknown`, `no_leader`.
   */
  async answer(call: Call, passing: Passing): Promise<Reply | null> {
    const placed = await this.#placeOf(call);
    if (placed === null) return null;
    if (isForLeader(call)) return this.#leaderOnly(call, placed);
    return placed.place === 'here' || this.#leader() === null ? null : this.#forward(call, placed, passing);
  }

  /** The member that decides what is not decided here; null where this one leads, or nobody: then each member commits by itself. */
  #leader(): ClusterMember | null {
    const { membership } = this.#cluster;
    if (membership.isLeader) return null;
    const leader = membership.leader();
    return leader === null || leader.instanceId === membership.instanceId ? null : leader;
  }

  /** Rule 12. */
  async #leaderOnly(call: Call, { place, methods }: Placed): Promise<Reply | null> {
    call.methods = methods;
    const leader = await this.leaderElsewhere(place === 'here');
    if (leader === null) return null;
    const moved = empty(call, 307, 'Temporary Redirect');
    return { ...moved, headers: { ...moved.headers, location: `${this.#cluster.forward.scheme}://${hostOf(leader)}${targetOf(call)}` } };
  }

  /**
   * The member that leads, for what is for the leader alone; null where that is this one. What it reads is then the newest state (`isRead`); writes prove by themselves
   * that they were decided by that. Errors: `no_leader`.
   */
  async leaderElsewhere(isRead: boolean): Promise<ClusterMember | null> {
    const { membership, log } = this.#cluster;
    const { clock } = this.#app.world;
    for (const untilMs = clock.monotonicMs() + LEADER_WAIT_MS; ;) {
      if (membership.isLeader) {
        if (isRead) await log.proveFresh(FRESH_MS);
        return null;
      }
      const leader = this.#leader();
      if (leader !== null) return leader;
      if (!await this.#changes.next(untilMs)) throw new SkuaError('no_leader', 'No member of the cluster leads at the moment. Try again in some seconds, or leave out the header that asks for the leader: any member answers without it.');
    }
  }

  async #forward(call: Call, { place, methods, access, audit, arrive = readBody }: Placed, passing: Passing): Promise<Reply | null> {
    call.methods = methods;
    await unlessUnknown(async () => {
      call.principal = await authenticate(call, this.#app);
      passing.isKnown = true;
      requireLogin(call, this.#app, access);
      await enter(call, this.#app, { access, ...(audit !== undefined && { audit }) });
    });
    const body = await arrive(call, this.#app);
    if (!(body instanceof Uint8Array)) return body;
    passing.held = this.held(call);
    // Of what is done the leader tells.
    call.audited = null;
    call.body = body;
    return this.passOn(call, place === 'append', body, passing.held);
  }

  /** A request that is here as a whole. */
  held(call: Call): HeldWrite {
    return this.#cluster.patience.begin(goneOf(call, this.#app));
  }

  /** Decides a request here whoever leads, which has been held before. */
  here<T>(held: HeldWrite, work: () => T): T {
    return this.#cluster.fence.run(null, held, work);
  }

  /** The member that decides what is not decided here; null where this one leads, or nobody. */
  get elsewhere(): ClusterMember | null { return this.#leader(); }

  /**
   * The leader's answer to a request whose body has arrived; null where it is to be decided here, as `here` does. A request that is no append is not sent a second time. Errors: `commit_outcome_unknown`,
   * `write_expired`.
   */
  async passOn(call: Call, isAppend: boolean, body: Uint8Array, held: HeldWrite): Promise<Reply | null> {
    const { clock, meter } = this.#app.world;
    const startMs = clock.monotonicMs();
    await findSession(call, this.#app);
    const reply = await this.#decided(call, isAppend, body, held);
    if (reply === null) this.#count('here');
    else meter.observe(DURATION, (clock.monotonicMs() - startMs) / 1_000);
    return reply;
  }

  /** Asks whoever leads, until somebody has decided the request; null where nobody has and it is to be decided here. */
  async #decided(call: Call, isAppend: boolean, body: Uint8Array, held: HeldWrite): Promise<Reply | null> {
    const { log, patience } = this.#cluster;
    const { clock } = this.#app.world;
    // A leader was given it and has not answered: it may be in the log.
    let isOpen = false;
    for (const untilMs = clock.monotonicMs() + Math.min(DEADLINE_MS, patience.limitMs / 2); ;) {
      const refusal = held.refusal();
      if (refusal !== null) throw isOpen ? this.#unknown(refusal) : refusal;
      const leader = this.#leader();
      const { epoch } = log;
      // It was refused by all that were asked, if any: nothing has happened, and members commit by themselves.
      if (leader === null || epoch === null || clock.monotonicMs() >= untilMs) return null;
      // Who does not hold the newest epoch here could only refuse: of one of the two this member hears in a moment.
      if (epoch.leaderInstanceId !== leader.instanceId) {
        if (!await this.#changes.next(Math.min(untilMs, clock.monotonicMs() + UNSETTLED_MS))) return null;
        continue;
      }
      const reply = await this.#asked(call, leader, epoch.number, isAppend, body, held);
      if (typeof reply === 'object') return this.#withOwnWrites(reply);
      isOpen ||= reply === 'settled';
      if (this.#leader()?.instanceId === leader.instanceId && log.epoch?.number === epoch.number) await this.#changes.next(Math.min(untilMs, clock.monotonicMs() + ASK_AGAIN_MS));
    }
  }

  /** The answer of this leader; or that it has certainly decided nothing, or that a newer epoch has settled what it has. Errors: `commit_outcome_unknown`. */
  async #asked(call: Call, leader: ClusterMember, epoch: number, isAppend: boolean, body: Uint8Array, held: HeldWrite): Promise<ReplyParts | 'undecided' | 'settled'> {
    const { membership, forward } = this.#cluster;
    try {
      const { appends, others } = this.#sentTo(leader, epoch);
      const reply = await forward.send(leader, this.#requestOf(call, leader, epoch, body, held), ANSWER_MS, (isAppend ? appends : others).signal);
      if (reply.headers[NOT_LEADER_HEADER] === undefined) return reply;
      this.#count('not-leader');
    } catch (error) {
      if (isSkuaError(error, 'member_unreachable')) {
        this.#count('unreachable');
        if (!WAITED.has(error.data['reason'])) membership.lost(leader.instanceId);
      } else if (isSkuaError(error, 'member_silent')) {
        this.#count('silent');
        if (error.data['reason'] === 'broken') membership.lost(leader.instanceId);
        if (!isAppend || !await this.#isSettled(epoch, error.data['reason'] === 'given-up' ? UNFOLLOWED_MS : DEADLINE_MS)) throw this.#unknown(error);
        return 'settled';
      } else throw error;
    }
    return 'undecided';
  }

  #sentTo({ instanceId }: ClusterMember, epoch: number): Sent {
    let sent = this.#sent.get(epoch);
    if (sent === undefined) {
      sent = { instanceId, appends: new AbortController(), others: new AbortController(), isUnheard: false };
      this.#sent.set(epoch, sent);
    }
    return sent;
  }

  /** A newer epoch is in the log: what an older leader has not decided by now it will not decide any more. */
  async #succeeded(epoch: number): Promise<void> {
    if (this.#sent.size === 0) return;
    await this.#app.world.clock.sleep(SUCCEEDED_MS);
    const leader = this.#leader();
    for (const [sentIn, sent] of this.#sent) {
      if (sentIn >= epoch) continue;
      sent.appends.abort();
      // The same member may lead on under a newer one.
      if (sent.instanceId === leader?.instanceId) this.#sent.delete(sentIn);
    }
    this.#listen();
  }

  /** Who leads, as far as is heard, has changed. */
  #listen(): void {
    const leader = this.#leader();
    for (const [epoch, sent] of this.#sent) if (!sent.isUnheard && sent.instanceId !== leader?.instanceId) background(this.#unheard(epoch, sent));
  }

  /** A leader that stands still answers nothing, and its connections do not break: nobody waits for it longer than it takes to be sure of that. */
  async #unheard(epoch: number, sent: Sent): Promise<void> {
    sent.isUnheard = true;
    await this.#app.world.clock.sleep(UNHEARD_MS);
    sent.isUnheard = false;
    if (this.#leader()?.instanceId === sent.instanceId) return;
    if (this.#sent.get(epoch) === sent) this.#sent.delete(epoch);
    sent.appends.abort();
    sent.others.abort();
  }

  /** Whether it is settled what a leader of this epoch has decided: this member has a newer epoch, and with it all that came before. */
  #isSettled(epoch: number, ms: number): Promise<boolean> {
    return within(this.#app.world.clock, ms, (signal) => this.#cluster.membership.newerEpoch(epoch, signal));
  }

  #unknown(cause: unknown): SkuaError {
    this.#count('unknown');
    return new SkuaError('commit_outcome_unknown', 'The leader of the cluster did not answer, so that it is not known whether the request was carried out: look, or send the same request again, with the same event ids.', {}, cause);
  }

  /** Whole, as it arrived, and with the caller's own credentials. */
  #requestOf(call: Call, leader: ClusterMember, epoch: number, body: Uint8Array, { ageMs }: HeldWrite): RequestParts {
    const { request } = call;
    const { server } = this.#app;
    const connection = request.headers.get('connection');
    const named = connection === null || connection === 'keep-alive' ? [] : connection.toLowerCase().split(',').map((name) => name.trim());
    const headers: Record<string, string> = { host: hostOf(leader) };
    // A session counts where the browser has brought it, and goes on as what it proves; senders may send what they like.
    const hasCookie = isIngestPath(call.path);
    for (const [name, value] of request.headers) if ((name !== 'cookie' || hasCookie) && !LEFT_OUT.has(name) && !name.startsWith(OURS) && !named.includes(name)) headers[name] = value;
    const { aheadMs } = leader;
    headers[FORWARDED_HEADER] = forwardedText({
      epoch, ...(aheadMs != null && { atMs: Math.floor((this.#app.world.clock.nowMs() + aheadMs - ageMs) / AT_STEP_MS) * AT_STEP_MS }), base: baseOf(call), address: server.addressOf?.(request) ?? null, isLocal: server.isLocal?.(request) ?? false, caller: provedCaller(call, this.#app), certificate: server.certificateOf?.(request) ?? null,
      ...(call.session !== null && { session: call.session.proof }),
    });
    return { method: call.method, target: targetOf(call), headers, body };
  }

  /** Answered once this member shows what the leader had written by then, so that one's own writes are seen at once. */
  async #withOwnWrites({ status, statusText, headers: { [LOG_END_HEADER]: end, ...headers }, body }: ReplyParts): Promise<Reply> {
    const position = Number(end);
    if (Number.isSafeInteger(position) && this.#cluster.log.end < position) await this.#ends.next(position, OWN_WRITES_MS);
    this.#count('answered');
    return { status, statusText, headers, body };
  }

  #count(outcome: Outcome): void {
    this.#app.world.meter.count(REQUESTS, 1, { outcome });
  }
}

/**
 * Judges the caller of a request that is passed on, by what this member's copy says of the users; the leader judges him again. Where that copy can't be read, as while it is opened,
 * the leader alone does.
 */
export async function unlessUnknown(judge: () => unknown): Promise<void> {
  try {
    await judge();
  } catch (error) {
    if (!isForOthers(error)) throw error;
  }
}

/** What a leader answers to a request that it does not decide: of its own, so that no answer to a client can be taken for it. */
export function notLeaderReply(): Reply {
  return { status: NOT_LEADER_STATUS, statusText: 'Misdirected Request', headers: { 'content-length': '0', [NOT_LEADER_HEADER]: 'true' }, body: null };
}

/** What a request that another member has passed on failed with, as its client is to be told; null where that member is to decide it, since nothing was done here. */
export function failedFor(passage: Passage | null, error: unknown): { readonly error: unknown } | null {
  if (passage === null || !isForOthers(error)) return { error };
  if (!passage.hasWritten) return null;
  return { error: new SkuaError('commit_outcome_unknown', 'The lead changed while the request was carried out, and a part of it was done: look, and send it again.', {}, error) };
}

/** The client asks for the leader alone. */
function isForLeader({ path, request }: Call): boolean {
  return path.startsWith('/streams/') && requiresLeader(request.headers);
}

/** Reads are answered here, but for those of what the leader alone has. */
function mayNotChange({ method, path }: Call): boolean {
  return (method === 'GET' || method === 'OPTIONS') && !path.startsWith('/auto-scavenge/') && !isSubscriptionPath(path);
}

function targetOf({ url, origin }: Call): string {
  return url.slice(origin.length);
}

function hostOf({ node: { address, port } }: ClusterMember): string {
  return `${address.includes(':') ? `[${address}]` : address}:${port}`;
}
