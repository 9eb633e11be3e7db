import type { AskLeader } from '../core/cluster/ask-leader/ask-leader.ts';
import { ANONYMOUS } from '../core/base/principal.ts';
import type { EventStore } from '../core/streams/api.ts';
import { countRefusal, enterMethod } from './admission.ts';
import { RequestAudit } from './audit-handler.ts';
import { authenticate } from './authentication.ts';
import { PLAIN } from './http/branches.ts';
import { appOf, goneOf, writerOf } from './http/context.ts';
import type { App, AppContext, Call } from './http/context.ts';
import { OK, STATUS } from './grpc/call.ts';
import type { Ending, GrpcCall, GrpcMethod, GrpcService, GrpcTransport } from './grpc/call.ts';
import { endingOf, notLeader as leaderIsElsewhere } from './grpc/grpc-errors.ts';
import { clusterGossip, gossip } from './grpc/gossip/gossip.ts';
import { monitoring } from './grpc/monitoring/monitoring.ts';
import { operations } from './grpc/operations/operations.ts';
import { persistentSubscriptions } from './grpc/persistent/persistent.ts';
import { serverFeatures } from './grpc/server-features/server-features.ts';
import { StreamsService } from './grpc/messages/streams.ts';
import { streams } from './grpc/streams/streams.ts';
import { streamsV2 } from './grpc/streams-v2/streams-v2.ts';
import { users } from './grpc/users/users.ts';

const BATCH_PATH = StreamsService.methods.BatchAppend.path;

/** Answers one call. It never rejects: every failure is an ending. */
export type Grpc = (transport: GrpcTransport) => Promise<Ending>;

/**
 * The services that a node with this context has, in the order in which the reference database lists them; a service
 * that it can't offer is absent, and not announced.
 */
export function servicesOf(app: App): readonly GrpcService[] {
  const services = [
    persistentSubscriptions(app),
    users(app),
    streams(app),
    operations(app),
    gossip(app),
    monitoring(app),
    streamsV2(app),
    clusterGossip,
  ].filter((service) => service !== null);
  return [...services, serverFeatures(services)];
}

/** What a node answers while its store is being opened, and once it is about to end. */
export const notReadyGrpc: Grpc = () =>
  Promise.resolve({ status: STATUS.unavailable, message: 'Server Is Not Ready', trailers: {} });

/** The whole gRPC interface as one function. */
export function createGrpc(context: AppContext): Grpc {
  const app = appOf(context);
  const calls = new Calls(app);
  return (transport) => {
    const call = callOf(transport);
    return calls.run(call, transport);
  };
}

/** A call as its method sees it. */
class RunningCall implements GrpcCall {
  readonly call: Call;
  readonly app: App;
  readonly transport: GrpcTransport;
  readonly audit: RequestAudit | null;
  readonly append: EventStore['append'];

  constructor(
    call: Call,
    app: App,
    transport: GrpcTransport,
    audit: RequestAudit | null,
    append: EventStore['append'],
  ) {
    this.call = call;
    this.app = app;
    this.transport = transport;
    this.audit = audit;
    this.append = append;
  }

  /** Made when first asked for. */
  get signal(): AbortSignal {
    return this.call.request.signal;
  }
}

class Calls {
  readonly #app: App;
  readonly #audit: RequestAudit | null;
  readonly #methods: ReadonlyMap<string, GrpcMethod>;
  readonly #services: ReadonlySet<string>;
  readonly #append: EventStore['append'];

  constructor(app: App) {
    this.#app = app;
    this.#audit = app.audit === null ? null : new RequestAudit(app, app.audit);
    const services = servicesOf(app);
    this.#methods = new Map(
      services.flatMap((service) => service.methods.map((method) => [method.path, method] as const)),
    );
    this.#services = new Set(services.map(({ name }) => name));
    this.#append = (stream, expectedVersion, events, authorize) =>
      app.store.append(stream, expectedVersion, events, authorize);
  }

  /** Carries out a call. */
  async run(call: Call, transport: GrpcTransport): Promise<Ending> {
    const { path } = transport;
    const method = this.#methods.get(path);
    if (method === undefined) {
      // Before authentication. Clients make UNIMPLEMENTED of the status of HTTP.
      if (!this.#services.has(path.slice(1, Math.max(1, path.lastIndexOf('/'))))) return { httpStatus: 404 };
      return { status: STATUS.unimplemented, message: 'Method is unimplemented.', trailers: {} };
    }
    const { cluster } = this.#app.features;
    return cluster == null || (method.place !== 'writes' && path !== BATCH_PATH)
      ? this.#answer(method, call, transport)
      : cluster.fence.own(
          () => writerOf(call, this.#app),
          goneOf(call, this.#app),
          () => this.#answer(method, call, transport),
        );
  }

  async #answer(method: GrpcMethod, call: Call, transport: GrpcTransport): Promise<Ending> {
    let isKnown = false;
    try {
      const app = this.#app;
      const audit = this.#audit;
      const caller = authenticate(call, app);
      call.principal = caller instanceof Promise ? await caller : caller;
      isKnown = true;
      const admitting = enterMethod(call, app, method);
      if (admitting !== undefined) await admitting;
      audit?.loggedIn(call);
      let append = this.#append;
      const { cluster } = app.features;
      if (cluster != null) {
        await requireLeader(method, call, cluster.ask);
        if (call.path === BATCH_PATH && asksForLeader(call)) append = atLeader(append, cluster.ask);
      }
      await method.run(new RunningCall(call, app, transport, audit, append));
      if (!call.isLong) app.turns.answered();
      audit?.done(call, 200);
      return OK;
    } catch (error) {
      return this.#failed(call, error, isKnown);
    }
  }

  /** How a call ends that failed with this; `isKnown`: the caller is. */
  #failed(call: Call, error: unknown, isKnown: boolean): Ending {
    countRefusal(this.#app, error);
    const ending = endingOf(error, this.#app, call.path, !isKnown);
    if (isKnown) this.#audit?.failed(call, statusOf(ending.status), error);
    else this.#audit?.notLoggedIn(call, statusOf(ending.status), error);
    return ending;
  }
}

/**
 * Throws `not-leader` with the address of the member that leads, where the call is for that one alone. What it reads
 * there is the newest state. Errors: `no_leader`.
 */
async function requireLeader(
  { place, notLeader = leaderIsElsewhere }: GrpcMethod,
  call: Call,
  ask: AskLeader,
): Promise<void> {
  if (place === 'node' || (place !== 'leader-only' && !asksForLeader(call))) return;
  const leader = await ask.leaderElsewhere(place === 'here' || place === 'leader-only');
  if (leader !== null) throw notLeader(leader.node);
}

/** The client wants to learn of another leader: also one that came while the call went on. */
function atLeader(append: EventStore['append'], ask: AskLeader): EventStore['append'] {
  return (...write) => {
    const { leader } = ask;
    return leader === null ? append(...write) : Promise.reject(leaderIsElsewhere(leader.node));
  };
}

function asksForLeader({ request }: Call): boolean {
  return request.headers.get('requires-leader')?.toLowerCase() === 'true';
}

/** The status of HTTP by which the audit log has what was refused apart from what failed. */
function statusOf(status: number): number {
  return status === STATUS.unauthenticated
    ? 401
    : status === STATUS.permissionDenied
      ? 403
      : status === STATUS.ok
        ? 200
        : 500;
}

function callOf({ path, request }: GrpcTransport): Call {
  return {
    request,
    method: 'POST',
    url: path,
    origin: '',
    path,
    branch: PLAIN,
    params: {},
    query: {},
    methods: '',
    principal: ANONYMOUS,
    entered: null,
    countedAs: null,
    session: null,
    base: '',
    audited: null,
    forwarded: null,
    guard: null,
    isLong: false,
    body: null,
  };
}
