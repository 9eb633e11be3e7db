import { describe, expect, test } from 'vitest';
import type { SkuaError } from '../../../core/base/errors.ts';
import { Flow } from '../../../local/http/flow.ts';
import { readBody } from '../../../local/http/http-request.ts';
import type { GrpcTransport } from '../../../handlers/grpc/call.ts';
import { caughtDuring } from '../../support/caught.ts';
import { until } from '../backup/node-kit.ts';
import { called, ClientCall, connect, echo, framed, serveGrpc } from './clients.ts';
import {
  ACK,
  callHeaders,
  CANCEL,
  dataFrame,
  END_HEADERS,
  END_STREAM,
  FRAME,
  frame,
  headersFrame,
  RawClient,
  resetFrame,
} from './frames.ts';
import type { Seen } from './frames.ts';

const goaway = ({ type }: Seen) => type === FRAME.goaway;
const codeOf = (seen: Seen | null) => seen?.payload.readUInt32BE(seen.type === FRAME.goaway ? 4 : 0);
const ENHANCE_YOUR_CALM = 11;

/** Each must leave the server well: others are answered afterwards. */
async function isWell(server: Parameters<typeof connect>[0]): Promise<void> {
  expect((await called(connect(server), ['well'])).texts).toEqual(['well']);
}

describe('a hostile client', () => {
  test('that resets a call with no reason has not ended its request', async () => {
    const ends: string[] = [];
    const server = await serveGrpc(async (call) => {
      await call.read();
      await Promise.resolve(call.read()).then(
        (message) => ends.push(String(message)),
        (error: unknown) => ends.push((error as Error).message),
      );
    });
    const raw = await RawClient.to(server);
    raw.send(headersFrame(1), dataFrame(1, framed('a')), resetFrame(1, 0));
    await until(async () => ends.length > 0);
    expect(ends).toEqual(['Call canceled by the client.']);
  });

  test('that begins calls and resets them at once is let go after some', async () => {
    let begun = 0;
    const server = await serveGrpc(async (call) => {
      begun++;
      await echo(call);
    });
    const raw = await RawClient.to(server);
    for (let id = 1; id < 10_000; id += 2) raw.send(headersFrame(id), resetFrame(id, CANCEL));
    await raw.closed;
    expect(codeOf(await raw.has(goaway))).toBeGreaterThan(0);
    expect(begun).toBeLessThan(3_000);
    await isWell(server);
  });

  test('that opens more calls than it may loses its connection, and others have theirs', async () => {
    const calls = new Set<GrpcTransport>();
    const server = await serveGrpc(async (call) => {
      if (call.path.endsWith('Echo')) return echo(call);
      calls.add(call);
      await call.read();
    });
    const raw = await RawClient.to(server);
    for (let i = 0; i < 10_000; i++) raw.send(headersFrame(2 * i + 1));
    await raw.closed;
    expect(codeOf(await raw.has(goaway))).toBeGreaterThan(0);
    expect(calls.size).toBeLessThanOrEqual(128);
    expect([...calls].every(({ request }) => request.signal.aborted)).toBe(true);
    expect((await called(connect(server), ['well'], {}, '/a.b/Echo')).texts).toEqual(['well']);
  });

  test('that sends giant headers, in one frame or without an end, is refused', async () => {
    const server = await serveGrpc(echo);
    const many = await RawClient.to(server);
    many.send(
      headersFrame(
        1,
        callHeaders(
          '/a.b/C',
          Array.from({ length: 200 }, (_, i) => [`x-${i}`, 'a'] as const),
        ),
      ),
    );
    expect(codeOf(await many.has(({ type }) => type === FRAME.reset))).toBe(ENHANCE_YOUR_CALM);
    const long = await RawClient.to(server);
    const parts = Array.from({ length: 5 }, (_, i) => [`x-${i}`, 'a'.repeat(10_000)] as const);
    long.send(
      headersFrame(1, callHeaders(), 0),
      ...parts.map((part, i) =>
        frame(FRAME.continuation, i === 4 ? END_HEADERS : 0, 1, headersFrame(1, [part]).subarray(9)),
      ),
    );
    expect(codeOf(await long.has(({ type }) => type === FRAME.reset || type === FRAME.goaway))).toBe(ENHANCE_YOUR_CALM);
    const endless = await RawClient.to(server);
    endless.send(headersFrame(1, callHeaders(), 0));
    for (let i = 0; i < 1_000; i++)
      endless.send(frame(FRAME.continuation, 0, 1, headersFrame(1, [['x', 'a'.repeat(1_000)]]).subarray(9)));
    await endless.closed;
    await isWell(server);
  });

  test.each([
    ['pings whose answers it does not read', frame(FRAME.ping, 0, 0, Buffer.alloc(8))],
    ['settings whose answers it does not read', frame(FRAME.settings, 0, 0)],
  ])('that floods with %s is closed, or held back', async (_, flood) => {
    const server = await serveGrpc(echo);
    const raw = await RawClient.to(server);
    raw.socket.pause();
    const many = Buffer.concat(Array.from({ length: 1_000 }, () => flood));
    const isTaken = await new Promise<boolean>((resolve) => {
      raw.socket.on('close', () => resolve(false));
      let left = 2_000;
      const go = () => {
        while (left-- > 0) if (!raw.socket.write(many)) return void raw.socket.once('drain', go);
        resolve(true);
      };
      go();
      setTimeout(() => resolve(false), 1_000);
    });
    expect(isTaken).toBe(false);
    await isWell(server);
  });

  test('that sends what is no frame of HTTP/2 is closed', async () => {
    const server = await serveGrpc(echo);
    for (const bytes of [
      Buffer.alloc(9, 255),
      headersFrame(2),
      dataFrame(7, framed('a')),
      frame(FRAME.headers, END_HEADERS, 1, Buffer.from('nonsense')),
    ]) {
      const raw = await RawClient.to(server);
      raw.send(bytes);
      await raw.closed;
    }
    await isWell(server);
  });

  test('that never reads holds one block, and is cut off after a while, alone', async () => {
    let sent = 0;
    const ended: unknown[] = [];
    const flow = new Flow({ stallMs: 200 });
    const server = await serveGrpc(
      async (call) => {
        if (call.path.endsWith('Echo')) return echo(call);
        while (!call.request.signal.aborted) {
          await call.send(framed('x'.repeat(100_000)));
          sent++;
        }
        ended.push(call.path);
      },
      { flow },
    );
    const session = connect(server);
    const stuck = new ClientCall(session);
    stuck.stream.pause();
    stuck.stream.end();
    const other = new ClientCall(session, '/a.b/Echo');
    for (let i = 0; i < 20; i++) {
      other.stream.write(framed(`${i}`));
      await other.has(i + 1);
    }
    await until(async () => ended.length > 0);
    expect(sent).toBeLessThan(5);
    expect(flow.replies.heldBytes).toBe(0);
    other.stream.end();
    await other.ended;
    expect(other.status).toBe(0);
    await stuck.ended;
    expect(stuck.stream.rstCode).toBe(ENHANCE_YOUR_CALM);
  });

  test('that sends more than all may hold is not read on, and what it sent is let go with its call', async () => {
    const flow = new Flow({ uploadBytesMax: 4_000_000, stallMs: 60_000 });
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const server = await serveGrpc(
      async (call) => {
        if (call.path.endsWith('Echo')) return echo(call);
        await call.read();
        await held;
        while ((await call.read()) !== null);
      },
      { flow },
    );
    const session = connect(server);
    const calls = Array.from({ length: 8 }, () => {
      const call = new ClientCall(session);
      call.stream.end(Buffer.concat([framed(Buffer.alloc(1_000_000)), framed('')]));
      return call;
    });
    await until(async () => flow.uploads.waiting > 0);
    const { heldBytes } = flow.uploads;
    expect(heldBytes).toBeLessThan(4_000_000 + 8 * 131_072);
    // Small ones go on meanwhile.
    expect((await called(connect(server), ['a'], {}, '/a.b/Echo')).texts).toEqual(['a']);
    release();
    await Promise.all(calls.map(({ ended }) => ended));
    expect(calls.map(({ status }) => status)).toEqual(calls.map(() => 0));
    expect(flow.uploads.heldBytes).toBe(0);
  });

  test('that does not end the request it owes is told so, one that may take its time is not', async () => {
    const server = await serveGrpc(
      async (call) => {
        await call.read(call.path.endsWith('Owed'));
      },
      {},
      { requestMs: 50, keepAliveIntervalMs: 100, keepAliveTimeoutMs: 600_000 },
    );
    const session = connect(server);
    const free = new ClientCall(session);
    const owed = new ClientCall(session, '/a.b/Owed');
    const begun = new ClientCall(session);
    begun.stream.write(framed('half').subarray(0, 6));
    await Promise.all([owed.ended, begun.ended]);
    expect([owed.status, owed.message, begun.status]).toEqual([4, 'The request did not arrive in time.', 4]);
    free.stream.end(framed('a'));
    await free.ended;
    expect(free.status).toBe(0);
  });

  test("that names a path which is none can't end the process, nor can what fails at a call's beginning", async () => {
    const urls: string[] = [];
    let isBroken = false;
    const server = await serveGrpc(
      echo,
      {},
      {
        watches: [
          ({ request }) => {
            if (isBroken) throw new Error('broken');
            urls.push(new URL(request.url).pathname);
            return () => {};
          },
        ],
      },
    );
    const raw = await RawClient.to(server);
    raw.send(
      headersFrame(1, [
        [':method', 'POST'],
        [':scheme', 'own'],
        [':path', 'x'],
        [':authority', 'a'],
        ['content-type', 'application/grpc'],
      ]),
      dataFrame(1, framed('a'), END_STREAM),
    );
    await raw.has(({ type, stream }) => stream === 1 && (type === FRAME.data || type === FRAME.reset));
    expect(urls).toEqual(['/x']);
    isBroken = true;
    await caughtDuring(async () => {
      raw.send(headersFrame(3));
      expect(codeOf(await raw.has(({ type, stream }) => stream === 3 && type === FRAME.reset))).toBe(2);
    });
    isBroken = false;
    await isWell(server);
  });

  test('that stands still in the middle of a large body loses that request, and no other of its connection', async () => {
    const server = await serveGrpc(echo, {
      flow: new Flow({ stallMs: 50 }),
      fetch: async (request) => {
        await readBody(request, 1_000_000);
        return new Response('');
      },
    });
    const session = connect(server);
    const stalled = session.request({ ':method': 'POST', ':path': '/a' });
    stalled.on('error', () => {});
    const closed = new Promise((resolve) => {
      stalled.on('close', resolve);
    });
    stalled.write(Buffer.alloc(600_000));
    await closed;
    expect(stalled.rstCode).toBe(CANCEL);
    expect((await called(session, ['well'])).texts).toEqual(['well']);
  });

  test('that sends half the body of a request is cut off as over HTTP/1.1', async () => {
    const outcomes: string[] = [];
    const server = await serveGrpc(
      echo,
      {
        fetch: async (request) => {
          await readBody(request, 1_000).then(
            () => outcomes.push('whole'),
            (error: unknown) => outcomes.push((error as SkuaError).code),
          );
          return new Response('');
        },
      },
      { requestMs: 50, keepAliveIntervalMs: 100, keepAliveTimeoutMs: 600_000 },
    );
    const raw = await RawClient.to(server);
    raw.send(
      headersFrame(1, [
        [':method', 'POST'],
        [':scheme', 'http'],
        [':path', '/a'],
        [':authority', 'a'],
      ]),
      dataFrame(1, Buffer.from('half')),
    );
    raw.send(
      headersFrame(3, [
        [':method', 'POST'],
        [':scheme', 'http'],
        [':path', '/a'],
        [':authority', 'a'],
      ]),
      dataFrame(3, Buffer.from('reset')),
      resetFrame(3, 0),
    );
    expect(codeOf(await raw.has(({ type, stream }) => type === FRAME.reset && stream === 1))).toBe(CANCEL);
    await until(async () => outcomes.length === 2);
    expect(outcomes).toEqual(['aborted', 'aborted']);
  });

  test('that is not there any more is found out by a ping', async () => {
    const server = await serveGrpc(echo, {}, { keepAliveIntervalMs: 60, keepAliveTimeoutMs: 60 });
    const gone = await RawClient.to(server);
    gone.send(headersFrame(1));
    expect(await gone.has(({ type, flags }) => type === FRAME.ping && flags !== ACK)).not.toBeNull();
    await gone.closed;
  });

  test('that answers pings stays, also where the process stands still longer than it waits for an answer', async () => {
    const server = await serveGrpc(echo, {}, { keepAliveIntervalMs: 60, keepAliveTimeoutMs: 200 });
    const there = connect(server);
    const open = new ClientCall(there);
    await new Promise<void>((resolve) => {
      let pings = 0;
      there.on('ping', () => {
        if (++pings === 3) resolve();
        else Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 400);
      });
    });
    open.stream.end(framed('still here'));
    await open.ended;
    expect(open.texts).toEqual(['still here']);
  });
});
