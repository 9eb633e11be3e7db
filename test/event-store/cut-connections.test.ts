import { connect as connectTo, createServer, type Server as NetServer, type Socket } from 'node:net';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { clientOf } from '../../local/client/connect.ts';
import type { Client, RecordedEvent } from '../../local/client/index.ts';
import { Random } from '../support/random.ts';
import { bySize } from '../support/run-size.ts';
import { aNode, quick } from './worlds.ts';
import type { Server } from './worlds.ts';

/** A client whose connections are cut at any byte, of what it sends and of what it is sent. */

let server: Server;
let proxy: NetServer;
let random: Random;
/** Of connections that are made from now on; 0: none is cut. */
let cutEvery = 0;
let cuts = 0;
const open = new Set<Socket>();

beforeAll(async () => {
  server = await aNode();
  const port = Number(new URL(server.url).port);
  proxy = createServer((client) => {
    const upstream = connectTo(port, '127.0.0.1');
    for (const socket of [client, upstream]) {
      open.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => open.delete(socket));
    }
    let left = cutEvery === 0 ? Number.POSITIVE_INFINITY : random.int(1, cutEvery);
    const pass = (from: Socket, to: Socket) => {
      from.on('data', (bytes) => {
        to.write(bytes.subarray(0, Math.max(0, left)));
        left -= bytes.length;
        if (left > 0) return;
        cuts++;
        to.end();
        from.destroy();
      });
      from.on('close', () => to.end());
    };
    pass(client, upstream);
    pass(upstream, client);
  });
  await new Promise<void>((resolve) => {
    proxy.listen(0, '127.0.0.1', resolve);
  });
});
afterAll(async () => {
  for (const socket of open) socket.destroy();
  proxy.close();
  await server.stop();
});

describe.each(Array.from({ length: bySize(2, 20) }, (_, i) => i + 1))('cut by seed %i', (seed) => {
  const COUNT = 120;
  let client: Client;
  const stream = `cut-${seed}`;
  beforeAll(() => {
    random = new Random(seed);
    cuts = 0;
    client = clientOf(
      {
        url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
        credentials: server.credentials,
        timeoutMs: 20_000,
      },
      quick,
    );
  });
  afterAll(() => client.close());

  test('writes each event once, and reads and follows each once, in order', async () => {
    cutEvery = 4_000;
    for (let i = 0; i < COUNT; i++) {
      // An answer may be lost more often than it is tried again: then the caller knows by the id.
      const event = { type: 'T', data: { i, text: 'x'.repeat(random.int(0, 300)) }, id: crypto.randomUUID() };
      for (;;) {
        try {
          expect((await client.append(stream, event, { expected: i === 0 ? 'none' : i - 1 })).version).toBe(i);
          break;
        } catch (error) {
          expect(error).toMatchObject({ code: 'unreachable' });
        }
      }
    }
    const upwards = Array.from({ length: COUNT }, (_, i) => i);
    const filter = { on: 'stream', prefixes: [stream] } as const;
    type Seen = RecordedEvent<{ i: number }>;
    for (const read of [
      (last?: Seen) => client.read<{ i: number }>(stream, { from: last === undefined ? 0 : last.version + 1 }),
      (last?: Seen) => client.readAll<{ i: number }>({ filter, from: last?.position ?? 'start' }),
      (last?: Seen) => client.subscribe<{ i: number }>({ stream, after: last?.version ?? 'start' }),
      (last?: Seen) => client.subscribe<{ i: number }>({ category: 'cut', filter, after: last?.position ?? 'start' }),
    ]) {
      // Enough for an event and its head.
      cutEvery = 9_000;
      const seen: Seen[] = [];
      while (seen.length < COUNT) {
        const last = seen.at(-1);
        try {
          for await (const event of read(last)) {
            // A reading of all that begins anew begins with the event at the position.
            if (event.id !== last?.id) seen.push(event);
            if (seen.length === COUNT) break;
          }
        } catch (error) {
          // What a slow reader had not taken yet goes with the connection, so that several in a row may bring nothing.
          expect(error).toMatchObject({ code: 'unreachable' });
        }
      }
      expect(seen.map(({ data }) => data.i)).toEqual(upwards);
    }
    expect(cuts).toBeGreaterThan(10);
  });
});
