import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { SkuaError } from '../../../core/base/errors.ts';
import type { GrpcEnding, GrpcTransport } from '../../../handlers/grpc/call.ts';
import { Flow } from '../../../local/http/flow.ts';
import { calledBy } from '../../../local/http/http-request.ts';
import { until } from '../backup/node-kit.ts';
import { called, ClientCall, connect, framed, serveGrpc } from './clients.ts';

const BUSY: GrpcEnding = { status: 14, message: 'Server Is Too Busy', trailers: {} };

/** Calls whose caller is the one that they name; they end when the client has said all. */
async function echoTo(call: GrpcTransport): Promise<GrpcEnding | void> {
  const caller = call.request.headers.get('x-caller');
  try {
    if (caller !== null) calledBy(call.request, caller);
  } catch (error) {
    if (error instanceof SkuaError && error.code === 'too_busy') return BUSY;
    throw error;
  }
  await call.send(framed('begun'));
  for (let message = await call.read(); message !== null; message = await call.read()) await call.send(framed(message));
}

const as = (caller: string) => ({ 'x-caller': caller });

/** Opens calls until they have begun, or were refused; how many began. */
async function open(
  server: Parameters<typeof connect>[0],
  count: number,
  metadata: Record<string, string>,
): Promise<{ readonly begun: readonly ClientCall[]; end(): Promise<void> }> {
  const sessions = Array.from({ length: Math.ceil(count / 100) }, () => connect(server));
  const calls = Array.from(
    { length: count },
    (_, i) => new ClientCall(sessions[Math.floor(i / 100)]!, undefined, metadata),
  );
  await Promise.all(calls.map((call) => Promise.race([call.has(1), call.ended])));
  const begun = calls.filter(({ status }) => Number.isNaN(status));
  return {
    begun,
    end: async () => {
      for (const { stream } of begun) stream.end();
      await Promise.all(begun.map(({ ended }) => ended));
    },
  };
}

describe('limits that callers share', () => {
  test('silent calls of one caller leave room for those of others, and for its own once they end', async () => {
    const server = await serveGrpc(echoTo, {}, { limits: { callsMax: 320 } });
    const flood = await open(server, 400, as('greedy'));
    expect(flood.begun).toHaveLength(240);
    expect((await called(connect(server), ['a'], as('other'))).texts).toEqual(['begun', 'a']);
    const refused = await called(connect(server), ['a'], as('greedy'));
    expect([refused.status, refused.message]).toEqual([14, 'Server Is Too Busy']);
    const others = await open(server, 30, as('other'));
    expect(others.begun).toHaveLength(20);
    await flood.end();
    expect((await called(connect(server), ['a'], as('greedy'))).texts).toEqual(['begun', 'a']);
  });

  test('calls whose callers are not known have a limit by address, and take nothing from those who are', async () => {
    const server = await serveGrpc(echoTo, {}, { limits: { unknownCallsMax: 50 } });
    const known = await open(server, 80, as('somebody'));
    const flood = await open(server, 80, {});
    expect([known.begun.length, flood.begun.length]).toEqual([80, 50]);
    await known.begun[0]!.has(1);
    known.begun[0]!.stream.end(framed('still here'));
    await known.begun[0]!.ended;
    expect(known.begun[0]!.texts).toEqual(['begun', 'still here']);
    await flood.end();
    expect((await called(connect(server), ['a'])).texts).toEqual(['begun', 'a']);
  });

  test('long headers are kept as long as their calls, and have a limit of their own by address', async () => {
    const server = await serveGrpc(echoTo, {}, { limits: { headersBytesMax: 64_000 } });
    const long = { 'x-long': 'a'.repeat(5_000) };
    const flood = await open(server, 20, long);
    expect(flood.begun).toHaveLength(9);
    expect((await called(connect(server), ['a'])).texts).toEqual(['begun', 'a']);
    await flood.end();
    expect((await called(connect(server), ['a'], long)).texts).toEqual(['begun', 'a']);
  });

  test('requests over HTTP/2 count as calls: 503 for the caller who has too many', async () => {
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const server = await serveGrpc(
      echoTo,
      {
        fetch: async (request) => {
          try {
            calledBy(request, request.headers.get('x-caller')!);
          } catch {
            return new Response('', { status: 503 });
          }
          if (request.url.endsWith('/held')) await held;
          return new Response('');
        },
      },
      { limits: { callsMax: 32 } },
    );
    const session = connect(server);
    const statusOf = (path: string, caller: string) =>
      new Promise<unknown>((resolve) => {
        session
          .request({ ':path': path, ...as(caller) })
          .on('response', (headers) => resolve(headers[':status']))
          .resume();
      });
    const all = Array.from({ length: 24 }, () => statusOf('/held', 'greedy'));
    expect(await statusOf('/', 'greedy')).toBe(503);
    expect(await statusOf('/', 'other')).toBe(200);
    release();
    expect(new Set(await Promise.all(all))).toEqual(new Set([200]));
    expect(await statusOf('/', 'greedy')).toBe(200);
  });

  test('bodies that one caller has begun leave room for those of others, large ones, too', async () => {
    const flow = new Flow({ uploadBytesMax: 4_000_000, stallMs: 60_000 });
    const server = await serveGrpc(echoTo, { flow });
    const [greedy, other] = [connect(server), connect(server)];
    // Messages of which all but the last byte arrives.
    const halves = Array.from({ length: 8 }, () => {
      const call = new ClientCall(greedy, undefined, as('greedy'));
      call.stream.write(framed(Buffer.alloc(600_000)).subarray(0, -1));
      return call;
    });
    await until(async () => flow.uploads.waiting > 0);
    const large = await called(other, ['x'.repeat(400_000)], as('other'));
    expect([large.status, large.texts[1]?.length]).toEqual([0, 400_000]);
    for (const { stream } of halves) stream.close();
    await until(async () => flow.uploads.heldBytes === 0);
    expect(flow.uploads.waiting).toBe(0);
  });
});

describe('with a clock', () => {
  test('a call whose first message does not begin is ended after seconds; one that has sent a message idles for an hour and goes on', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
    onTestFinished(() => {
      vi.useRealTimers();
    });
    const server = await serveGrpc(echoTo, {}, { keepAliveIntervalMs: 10_000, keepAliveTimeoutMs: 10_000 });
    const session = connect(server);
    const silent = new ClientCall(session, undefined, as('somebody'));
    const idle = Array.from({ length: 3 }, () => new ClientCall(session, undefined, as('somebody')));
    for (const { stream } of idle) stream.write(framed('first'));
    await Promise.all([...idle.map((call) => call.has(2)), silent.has(1)]);
    let pongs = 0;
    for (let second = 0; second < 3_600; second += 5) {
      await vi.advanceTimersByTimeAsync(5_000);
      // What the server asks has its answer before time goes on.
      await new Promise<void>((resolve) => {
        session.ping(() => {
          pongs++;
          resolve();
        });
      });
      if (second === 5) expect(Number.isNaN(silent.status)).toBe(true);
      if (second === 10) await silent.ended;
    }
    expect([silent.status, silent.message, pongs]).toEqual([4, 'The request did not arrive in time.', 720]);
    for (const { stream } of idle) stream.end(framed('last'));
    await Promise.all(idle.map(({ ended }) => ended));
    expect(idle.map(({ texts }) => texts)).toEqual(idle.map(() => ['begun', 'first', 'last']));
  });
});
