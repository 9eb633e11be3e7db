import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { EventEmitter } from 'node:events';
import type { IncomingHttpHeaders, ServerHttp2Session, ServerHttp2Stream } from 'node:http2';
import * as path from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import * as timers from '../../../../infra/timers.ts';
import { ClientNode } from '../nodes.ts';
import type { Library } from '../nodes.ts';
import { numbered, told } from './suite.ts';

const HOUR_MS = 3_600_000;
/** Time moves on by less than a node waits for the answer to a ping. */
const STEP_MS = 5_000;
/** Node.js tells here of each stream of HTTP/2 that a client opens. */
const OPENED = 'http2.server.stream.created';

type Tell = (error: Error | null, durationMs: number, payload: NonSharedBuffer) => void;

/** What reaches the node of this process: connections, and the calls over them. */
class Reached {
  readonly connections = new Set<ServerHttp2Session>();
  begun = 0;
  readonly open: string[] = [];
  /** Pings of the node whose answers are on their way, and how many were answered. */
  readonly #asked = new Set<Promise<void>>();
  answers = 0;

  constructor() {
    const opened = (message: unknown): void => {
      const { stream, headers } = message as {
        readonly stream: ServerHttp2Stream;
        readonly headers: IncomingHttpHeaders;
      };
      const call = path.posix.basename(headers[':path']!);
      this.begun++;
      this.open.push(call);
      stream.on('close', () => this.open.splice(this.open.indexOf(call), 1));
      const session = stream.session as ServerHttp2Session;
      if (!this.connections.has(session)) this.#follow(session);
    };
    subscribe(OPENED, opened);
    onTestFinished(() => {
      unsubscribe(OPENED, opened);
    });
  }

  /** Resolves when the clients have answered all that they were asked. */
  async answered(): Promise<void> {
    await Promise.all(this.#asked);
  }

  #follow(session: ServerHttp2Session): void {
    this.connections.add(session);
    const ping = session.ping.bind(session) as (tell: Tell) => boolean;
    Object.assign(session, {
      ping: (tell: Tell) => {
        const { promise, resolve } = Promise.withResolvers<void>();
        this.#asked.add(promise);
        return ping((...answer) => {
          tell(...answer);
          this.#asked.delete(promise);
          this.answers++;
          resolve();
        });
      },
    });
  }
}

/** A client that says nothing for an hour has its calls all the same. Needs `support/fake-time.ts`. */
export function idleTests(lib: Library, isSecure: boolean): void {
  test('an hour in which nothing happens, and everything goes on over the same connection and the same calls', async () => {
    // The node has the time of this process, and its clients have it as well.
    expect(timers.setTimeout).toBe(setTimeout);
    const reached = new Reached();
    const node = await ClientNode.start(isSecure);
    onTestFinished(() => node.stop());
    const client = node.client(lib);
    const name = 'parcels';
    await client.appendToStream(name, numbered(lib, 1));
    await client.createPersistentSubscriptionToStream(
      name,
      'group',
      lib.persistentSubscriptionToStreamSettingsFromDefaults({ startFrom: lib.START }),
    );
    const subscriptions = {
      one: client.subscribeToStream(name),
      all: client.subscribeToAll({ filter: lib.streamNameFilter({ prefixes: [name] }) }),
      group: client.subscribeToPersistentSubscriptionToStream(name, 'group'),
    };
    const got: string[] = [];
    for (const [by, subscription] of Object.entries(subscriptions) as unknown as [string, EventEmitter][]) {
      subscription
        .on('error', (error: Error) => got.push(`${by}: ${error.message}`))
        .on('end', () => got.push(`${by}: end`));
      subscription.on('data', ({ event }: { readonly event: { readonly revision: bigint } }) => {
        got.push(`${by}: ${event.revision}`);
        if (by === 'group') void subscriptions.group.ack({ event } as never);
      });
    }
    const inFlight = async () =>
      (await client.getPersistentSubscriptionToStreamInfo(name, 'group')).stats.totalInFlightMessages;
    await Promise.all([told(subscriptions.one, 'caughtUp'), told(subscriptions.all, 'caughtUp')]);
    await expect.poll(() => got.sort()).toEqual(['all: 0', 'group: 0', 'one: 0']);
    await expect.poll(inFlight).toBe(0);
    await expect.poll(() => reached.open).toEqual(['BatchAppend', 'Read', 'Read', 'Read']);
    const { begun } = reached;
    for (let ms = 0; ms < HOUR_MS; ms += STEP_MS) {
      vi.advanceTimersByTime(STEP_MS);
      await new Promise(setImmediate);
      await reached.answered();
    }
    expect({ open: reached.open.length, got }).toEqual({ open: 4, got: ['all: 0', 'group: 0', 'one: 0'] });
    await client.appendToStream(name, numbered(lib, 1, 1));
    await expect.poll(() => got.sort()).toEqual(['all: 0', 'all: 1', 'group: 0', 'group: 1', 'one: 0', 'one: 1']);
    expect({ begun: reached.begun, open: reached.open.length, connections: reached.connections.size }).toEqual({
      begun,
      open: 4,
      connections: 1,
    });
    expect(reached.answers).toBeGreaterThan(100);
    await expect.poll(inFlight).toBe(0);
  });
}
