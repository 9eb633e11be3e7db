import type { HeldWrite } from '../core/cluster/api.ts';
import { ANONYMOUS } from '../core/security/principal.ts';
import type { Principal } from '../core/security/principal.ts';
import type { EventStore } from '../core/streams/api.ts';
import { countRefusal, enterMethod } from './admission.ts';
import { RequestAudit } from './audit.ts';
import { authenticate } from './authentication.ts';
import { failedFor, notLeaderReply, unlessUnknown } from './forward.ts';
import { CallsElsewhere } from './grpc-members.ts';
import { readBody } from './http/body.ts';
import { appOf } from './http/context.ts';
import type { App, AppContext, Call, PassedOnCalls, Reply } from './http/context.ts';
import { OK, STATUS } from './grpc/call.ts';
import type { Ending, GrpcCall, GrpcMethod, GrpcService, GrpcTransport } from './grpc/call.ts';
import { endingOf } from './grpc/errors.ts';
import { ArrivedCall, GRPC_TYPE, replyOf } from './grpc/passed-on.ts';
import { clusterGossip, gossip } from './grpc/gossip/gossip.ts';
import { monitoring } from './grpc/monitoring/monitoring.ts';
import { operations } from './grpc/operations/operations.ts';
import { persistentSubscriptions } from './grpc/persistent/persistent.ts';
import { serverFeatures } from './grpc/server-features/server-features.ts';
import { StreamsService } from './grpc/messages/streams.ts';
import { streams } from './grpc/streams/streams.ts';
import { streamsV2 } from './grpc/streams-v2/streams.ts';
import { users } from './grpc/users/users.ts';

const BATCH_PATH = StreamsService.methods.BatchAppend.path;

/** Answers one call. It never rejects: every failure is an ending. */
export type Grpc = (transport: GrpcTransport) => Promise<Ending>;

/** The services that a node with this context has, in the order in which the reference database tells of them; a service that it can't offer is absent, and not announced. */
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
export const notReadyGrpc: Grpc = () => Promise.resolve({ status: STATUS.unavailable, message: 'Server Is Not Ready', trailers: {} });

/** The whole gRPC interface as one function (grpc-api.md). */
export function createGrpc(context: AppContext): Grpc {
  const app = appOf(context);
  const { cluster } = app.features;
  const calls = new Calls(app, cluster == null ? null : new CallsElsewhere(app, cluster));
  return (transport) => {
    const call = callOf(transport);
    return calls.run(call, transport, (error, isKnown) => calls.failed(call, error, isKnown));
  };
}

/** Calls that another member has passed on, one for each context. */
export function passedOnCalls(): PassedOnCalls {
  let known: { readonly app: App; readonly calls: Calls } | null = null;
  return {
    answer(call, app) {
      if (call.method !== 'POST' || call.request.headers.get('content-type')?.startsWith(GRPC_TYPE) !== true) return null;
      if (known?.app !== app) known = { app, calls: new Calls(app, null) };
      // Other members pass on methods that they know. What else comes is HTTP, whatever type it names.
      return known.calls.has(call.path) ? answerPassedOn(call, app, known.calls) : null;
    },
  };
}

async function answerPassedOn(call: Call, app: App, calls: Calls): Promise<Reply> {
  const blocks: Uint8Array[] = [];
  const failedAs = (thrown: unknown, isKnown: boolean): Ending | null => {
    const failed = failedFor(call.passage, thrown);
    return failed === null ? null : calls.failed(call, failed.error, isKnown);
  };
  let ending: Ending | null;
  try {
    const transport = new ArrivedCall({ path: call.path, request: call.request }, await readBody(call, app), (block) => {
      blocks.push(block);
      return null;
    });
    ending = await calls.run(call, transport, failedAs);
  } catch (thrown) {
    ending = failedAs(thrown, false);
  }
  return ending === null ? notLeaderReply() : replyOf(ending, blocks);
}

/** A call as its method sees it. */
class RunningCall implements GrpcCall {
  readonly call: Call;
  readonly app: App;
  readonly transport: GrpcTransport;
  readonly audit: RequestAudit | null;
  readonly append: EventStore['append'];

  constructor(call: Call, app: App, transport: GrpcTransport, audit: RequestAudit | null, append: EventStore['append']) {
    this.call = call;
    this.app = app;
    this.transport = transport;
    this.audit = audit;
    this.append = append;
  }

  /** Made when first asked for. */
  get signal(): AbortSignal { return this.call.request.signal; }
}

class Calls {
  readonly #app: App;
  readonly #elsewhere: CallsElsewhere | null;
  readonly #audit: RequestAudit | null;
  readonly #methods: ReadonlyMap<string, GrpcMethod>;
  readonly #services: ReadonlySet<string>;
  readonly #append: EventStore['append'];

  constructor(app: App, elsewhere: CallsElsewhere | null) {
    this.#app = app;
    this.#elsewhere = elsewhere;
    this.#audit = app.audit === null ? null : new RequestAudit(app, app.audit);
    const services = servicesOf(app);
    this.#methods = new Map(services.flatMap((service) => service.methods.map((method) => [method.path, method] as const)));
    this.#services = new Set(services.map(({ name }) => name));
    this.#append = (stream, expectedVersion, events, authorize) => app.store.append(stream, expectedVersion, events, authorize);
  }

  has(path: string): boolean {
    return this.#methods.has(path);
  }

  /** Carries out a call; `failed` says how one ends that failed with this, and is told whether the caller was known by then. */
  async run<None>(call: Call, transport: GrpcTransport, failed: (error: unknown, isKnown: boolean) => Ending | None): Promise<Ending | None> {
    const { path } = transport;
    const method = this.#methods.get(path);
    if (method === undefined) {
      // Before anybody is asked who calls. Clients make UNIMPLEMENTED of the status of HTTP.
      if (!this.#services.has(path.slice(1, Math.max(1, path.lastIndexOf('/'))))) return { httpStatus: 404 };
      return { status: STATUS.unimplemented, message: 'Method is unimplemented.', trailers: {} };
    }
    let isKnown = false;
    try {
      const app = this.#app;
      // Appends of a batch call are told of by the member that has the call.
      const audit = call.passage !== null && path === BATCH_PATH ? null : this.#audit;
      const elsewhere = this.#elsewhere;
      // Before anything of the call is read.
      const admit = (): void | Promise<void> => {
        const known = (principal: Principal): void | Promise<void> => {
          call.principal = principal;
          isKnown = true;
          return enterMethod(call, app, method);
        };
        isKnown = false;
        const caller = authenticate(call, app);
        return caller instanceof Promise ? caller.then(known) : known(caller);
      };
      let taken = transport;
      let held: HeldWrite | null = null;
      if (elsewhere?.passesOn(method, call) === true) {
        await unlessUnknown(admit);
        const passed = await elsewhere.passOn(method, call, transport);
        if (!('arrived' in passed)) return passed;
        ({ arrived: taken, held } = passed);
      }
      const admitting = admit();
      if (admitting !== undefined) await admitting;
      audit?.loggedIn(call);
      let append = this.#append;
      if (elsewhere !== null) {
        await elsewhere.requireLeader(method, call);
        if (path === BATCH_PATH) append = elsewhere.appendsOf(call);
      }
      const running = new RunningCall(call, app, taken, audit, append);
      await (held === null ? method.run(running) : elsewhere!.here(held, () => method.run(running)));
      if (!call.isLong) app.turns.answered();
      audit?.done(call, 200);
      return OK;
    } catch (error) {
      return failed(error, isKnown);
    }
  }

  /** How a call ends that failed with this; `isKnown`: the caller is. */
  failed(call: Call, error: unknown, isKnown: boolean): Ending {
    countRefusal(this.#app, error);
    const ending = endingOf(error, this.#app, call.path, !isKnown);
    if (isKnown) this.#audit?.failed(call, statusOf(ending.status), error);
    else this.#audit?.notLoggedIn(call, statusOf(ending.status), error);
    return ending;
  }
}

/** The status of HTTP by which the audit tells what was refused from what failed. */
function statusOf(status: number): number {
  return status === STATUS.unauthenticated ? 401 : status === STATUS.permissionDenied ? 403 : status === STATUS.ok ? 200 : 500;
}

function callOf({ path, request }: GrpcTransport): Call {
  return {
    request, method: 'POST', url: path, origin: '', path, params: {}, query: {}, methods: '', principal: ANONYMOUS, countedAs: null, session: null, base: '', audited: null, forwarded: null, passage: null, isLong: false, body: null,
  };
}
