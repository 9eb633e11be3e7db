import type { ClusterMember, MemberLog, Membership } from '../../../core/cluster/api.ts';
import type { MemberStore } from '../../../core/cluster/replica/replica.ts';
import { AskLeader } from '../../../core/cluster/ask-leader/ask-leader.ts';
import { Patience } from '../../../core/cluster/patience/patience.ts';
import { WRITES_PATH, WritesElsewhere } from '../../../core/cluster/writes-elsewhere/writes-elsewhere.ts';
import { upToDateOf } from '../../../core/cluster/up-to-date/up-to-date.ts';
import { SkuaError } from '../../../core/base/errors.ts';
import { silentLog } from '../../../core/ports/log.ts';
import type { Meter } from '../../../core/ports/meter.ts';
import { createApp } from '../../../handlers/app.ts';
import type { ClusterFeature } from '../../../handlers/http/context.ts';
import type { Forwarder, ReplyParts, RequestParts } from '../../../handlers/http/cluster-feature.ts';
import type { EventStore } from '../../../core/streams/api.ts';
import { MEMBER_HEADER } from '../../../handlers/http/forwarded.ts';
import { EpochFence } from '../../../local/cluster/fence.ts';
import { clientFor } from '../../grpc/harness.ts';
import type { GrpcClient } from '../../grpc/harness.ts';
import { contextOf } from '../../support/app-context.ts';
import type { FlatContext } from '../../support/app-context.ts';
import { FakeScavenger } from '../../support/fake-scavenger.ts';
import { SeededIds } from '../../support/seeded-ids.ts';
import { Cluster } from '../replica/kit.ts';

export const EVENTS = 'application/vnd.eventstore.events+json';
export const SECRET = 'between us';
export const PATIENCE_MS = 10_000;

export const STREAMS = '/event_store.client.streams.Streams';
/** Requests of gRPC. */
export const named = (stream: string) => ({
  stream_identifier: { stream_name: Buffer.from(stream).toString('base64') },
});
export const event = (id: string) => ({
  id: { string: id },
  metadata: { type: 't', 'content-type': 'application/json' },
  data: Buffer.from('{"a":1}').toString('base64'),
});
export const batch = (stream: string, id: string, options: object = { any: {} }) => ({
  correlation_id: { string: id },
  options: { ...named(stream), ...options },
  proposed_messages: [event(id)],
  is_final: true,
});

export function instanceOf(index: number): string {
  return `${String(index + 1).repeat(8)}-0000-4000-8000-000000000000`;
}

/** Who leads, as one member knows it: the test says so. */
export class KnownLead implements Pick<
  Membership,
  'instanceId' | 'isLeader' | 'leader' | 'lost' | 'newerEpoch' | 'onChange'
> {
  readonly lostInstances: string[] = [];
  readonly self: ClusterMember;
  isLeader = false;
  #leader: ClusterMember | null = null;
  readonly #log: MemberLog;
  readonly #listeners: (() => void)[] = [];
  readonly #waiting = new Set<() => void>();

  constructor(index: number, log: MemberLog) {
    this.self = memberAt(index);
    this.#log = log;
    log.onEpoch(() => {
      for (const look of this.#waiting) look();
    });
  }

  get instanceId(): string {
    return this.self.instanceId;
  }
  leader(): ClusterMember | null {
    return this.#leader;
  }

  knows(leader: ClusterMember | null): void {
    this.#leader = leader;
    this.isLeader = leader?.instanceId === this.self.instanceId;
    for (const listener of this.#listeners) listener();
  }

  /** As a member that hears nobody else either. */
  lost(instanceId: string): void {
    this.lostInstances.push(instanceId);
    if (this.#leader?.instanceId === instanceId) this.knows(null);
  }

  newerEpoch(than: number, signal: AbortSignal): Promise<boolean> {
    const isThere = () => (this.#log.epoch?.number ?? -1) > than;
    if (isThere()) return Promise.resolve(true);
    return new Promise((resolve) => {
      const look = () => {
        if (isThere()) end(true);
      };
      const end = (came: boolean) => {
        this.#waiting.delete(look);
        resolve(came);
      };
      this.#waiting.add(look);
      signal.addEventListener('abort', () => end(false));
    });
  }

  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }
}

export function memberAt(index: number): ClusterMember {
  return {
    node: { address: '127.0.0.1', port: 2_113 + 10 * index },
    instanceId: instanceOf(index),
    isAlive: true,
  } as ClusterMember;
}

/** What the test lets happen to a request between two members; by default it arrives, and its answer does. */
export type Wire = (
  deliver: () => Promise<ReplyParts>,
  request: RequestParts,
  signal: AbortSignal | null,
) => Promise<ReplyParts>;

export interface TestMember {
  readonly index: number;
  readonly store: MemberStore;
  readonly lead: KnownLead;
  readonly counts: Map<string, number>;
  readonly ask: AskLeader;
  readonly elsewhere: WritesElsewhere;
  readonly app: (request: Request) => Promise<Response>;
  readonly grpc: GrpcClient;
  send(method: string, path: string, headers?: Record<string, string>, body?: string | null): Promise<Answer>;
  append(stream: string, id: string, headers?: Record<string, string>): Promise<Answer>;
  types(stream: string): Promise<string[]>;
}

export interface Answer {
  readonly status: number;
  readonly reason: string;
  readonly headers: Headers;
  readonly text: string;
}

/** Members over one bucket, each with the handlers in front of a real copy. */
export class Members {
  readonly cluster = new Cluster();
  readonly all: TestMember[] = [];
  /** Requests that arrived at a member by way of another. */
  readonly forwarded: { readonly to: number; readonly request: RequestParts }[] = [];
  wire: Wire = (deliver) => deliver();
  /** Carries requests in place of a call in this process. */
  over: Pick<Forwarder, 'send'> | null = null;
  /** Whether a member gets what a leader has written when that has answered. */
  isFed = true;
  readonly #apps: ((request: Request) => Promise<Response>)[] = [];

  /** A leader and a follower that know each other. */
  async pair(): Promise<{ readonly leader: TestMember; readonly follower: TestMember }> {
    const [leader, follower] = [await this.open(), await this.open()];
    await this.leads(leader, follower);
    return { leader, follower };
  }

  async open(
    contextFor: (store: MemberStore, index: number, written: EventStore) => Partial<FlatContext> = () => ({}),
  ): Promise<TestMember> {
    const store = await this.cluster.open();
    const index = this.all.length;
    const lead = new KnownLead(index, store.log);
    const counts = new Map<string, number>();
    const meter: Meter = {
      count: (name, value = 1, labels = {}) => {
        const key = `${name} ${Object.values(labels).join(' ')}`.trim();
        counts.set(key, (counts.get(key) ?? 0) + value);
      },
      gauge: () => {},
      observe: (name) => {
        counts.set(name, (counts.get(name) ?? 0) + 1);
      },
    } as Meter;
    const patience = new Patience(this.cluster.clock, PATIENCE_MS);
    const fence = new EpochFence(store.log, instanceOf(index), patience);
    const forward: Forwarder = {
      scheme: 'http',
      send: (leader, request, timeoutMs, signal) =>
        this.wire(
          () =>
            this.over === null
              ? this.#deliver(leader, request, store)
              : this.#sendOver(this.over, leader, request, timeoutMs, signal, store),
          request,
          signal,
        ),
    };
    const ask = new AskLeader({ membership: lead, log: store.log, patience, clock: this.cluster.clock, meter });
    const elsewhere = new WritesElsewhere({ ask, carrier: forward, patience, breath: () => Promise.resolve() });
    const written = fence.storeOf(store.store, elsewhere);
    const context = contextOf({
      store: written,
      scavenger: new FakeScavenger(),
      clock: this.cluster.clock,
      ids: new SeededIds(50 + index),
      log: silentLog,
      meter,
      security: null,
      node: null,
      cluster: {
        membership: lead as unknown as ClusterFeature['membership'],
        log: store.log,
        upToDate: upToDateOf(store.log, this.cluster.clock),
        isSecret: (text) => text === SECRET,
        forward,
        fence,
        patience,
        ask,
        copy: store.store,
      },
      ...contextFor(store, index, written),
    });
    const app = createApp(context);
    this.#apps.push(app);
    const send = async (
      method: string,
      path: string,
      headers: Record<string, string> = {},
      body: string | null = null,
    ): Promise<Answer> => {
      const response = await app(
        new Request(originOf(index) + path, {
          method,
          headers: { host: originOf(index).slice('http://'.length), ...headers },
          body,
        }),
      );
      return {
        status: response.status,
        reason: response.statusText,
        headers: response.headers,
        text: await response.text(),
      };
    };
    const member: TestMember = {
      index,
      store,
      lead,
      counts,
      ask,
      elsewhere,
      app,
      send,
      grpc: clientFor(context),
      append: (stream, id, headers = {}) =>
        send(
          'POST',
          `/streams/${stream}`,
          { 'content-type': EVENTS, ...headers },
          JSON.stringify([{ eventId: id, eventType: 't', data: { a: 1 } }]),
        ),
      types: async (stream) => {
        await store.log.refresh();
        return (await store.store.readStream(stream, { direction: 'forward', from: 0, count: 100 })).events.map(
          ({ id }) => id,
        );
      },
    };
    this.all.push(member);
    return member;
  }

  /** This member commits an epoch; all that are named hear that it leads, and take it in. */
  async leads(member: TestMember, ...knownBy: readonly TestMember[]): Promise<void> {
    await member.store.log.refresh();
    await member.store.log.lead(instanceOf(member.index), member.store.log.epoch?.number ?? -1);
    for (const each of [member, ...knownBy]) each.lead.knows(memberAt(member.index));
    for (const each of knownBy) await each.store.log.refresh();
  }

  async #deliver(
    leader: ClusterMember,
    { method, target, headers, body }: RequestParts,
    to: MemberStore,
  ): Promise<ReplyParts> {
    const index = this.all.findIndex(({ lead }) => lead.self.instanceId === leader.instanceId);
    this.forwarded.push({ to: index, request: { method, target, headers, body } });
    const given = new Headers({
      ...headers,
      ...(target === WRITES_PATH ? { authorization: `Cluster ${SECRET}` } : { [MEMBER_HEADER]: SECRET }),
    });
    const response = await this.#apps[index]!(
      new Request(`http://${given.get('host') ?? originOf(index).slice('http://'.length)}${target}`, {
        method,
        headers: given,
        body: method === 'GET' ? null : (body as Uint8Array<ArrayBuffer>),
      }),
    );
    const bytes = new Uint8Array(await response.arrayBuffer());
    if (this.isFed) await to.log.refresh();
    return {
      status: response.status,
      statusText: response.statusText,
      headers: Object.fromEntries(response.headers),
      body: bytes.length === 0 ? null : bytes,
    };
  }

  async #sendOver(
    over: Pick<Forwarder, 'send'>,
    leader: ClusterMember,
    request: RequestParts,
    timeoutMs: number,
    signal: AbortSignal | null,
    to: MemberStore,
  ): Promise<ReplyParts> {
    const reply = await over.send(leader, request, timeoutMs, signal);
    if (this.isFed) await to.log.refresh();
    return reply;
  }

  /** The next object that is created waits until it is let go. */
  hold(): { readonly begun: Promise<void>; go(): void } {
    const { objects } = this.cluster;
    const [begun, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const { create } = objects;
    objects.create = async (...args) => {
      objects.create = create;
      begun.resolve();
      await held.promise;
      return create.apply(objects, args);
    };
    return { begun: begun.promise, go: () => held.resolve() };
  }

  async close(): Promise<void> {
    for (const { store } of this.all) await store.close();
  }
}

export function originOf(index: number): string {
  return `http://127.0.0.1:${2_113 + 10 * index}`;
}

export function unreachable(): SkuaError {
  return new SkuaError('member_unreachable', 'Refused.', { node: 'a member', reason: 'refused' });
}

export function silent(reason: 'broken' | 'time' | 'given-up' = 'broken'): SkuaError {
  return new SkuaError('member_silent', 'No answer.', { node: 'a member', reason });
}

let next = 0;

export function newId(): string {
  return `30000000-0000-4000-8000-${String(++next).padStart(12, '0')}`;
}
