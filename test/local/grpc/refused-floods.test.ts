import * as http2 from 'node:http2';
import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { silentMeter } from '../../../core/ports/meter.ts';
import { Beginnings } from '../../../local/grpc/beginnings.ts';
import type { Beginner } from '../../../local/grpc/beginnings.ts';
import type { GrpcEnding, GrpcTransport } from '../../../handlers/grpc/call.ts';
import { called, ClientCall, connect, echo, framed, serveGrpc } from './clients.ts';

const NO_LOGIN: GrpcEnding = { status: 16, message: 'This requires a login.', trailers: {} };
const STRANGER = { 'x-caller': 'stranger' };

describe('streams begin in turns', () => {
  const beginner = (address = '127.0.0.1', refusedInRow = 0): Beginner => ({ address, refusedInRow });

  test('64 in a turn of the process, of each connection one in turn', async () => {
    const beginnings = new Beginnings();
    const [a, b] = [beginner(), beginner()];
    const begun: string[] = [];
    const begin = (who: Beginner, name: string) => {
      if (beginnings.tryBegin(who)) begun.push(name);
      else beginnings.wait(who, () => begun.push(name));
    };
    for (let i = 0; i < 200; i++) begin(a, 'a');
    for (let i = 0; i < 3; i++) begin(b, 'b');
    expect([begun.length, beginnings.waiting]).toEqual([64, 139]);
    await turn();
    expect([begun.length, begun.slice(64, 72).join('')]).toEqual([128, 'abababaa']);
    await turn();
    await turn();
    expect([begun.length, beginnings.waiting]).toEqual([203, 0]);
  });

  test('where only refusals were answered of late, two in a millisecond; others are not held up', () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'setImmediate'] });
    onTestFinished(() => {
      vi.useRealTimers();
    });
    const beginnings = new Beginnings();
    const refused = Array.from({ length: 10 }, () => beginner('127.0.0.1', 16));
    const begun: number[] = [];
    for (let i = 0; i < 50; i++)
      if (!beginnings.tryBegin(refused[i % 10]!)) beginnings.wait(refused[i % 10]!, () => begun.push(i % 10));
    expect([beginnings.waiting, beginnings.tryBegin(beginner())]).toEqual([48, true]);
    vi.advanceTimersByTime(5);
    expect(begun).toEqual([2, 3, 4, 5, 6, 7, 8, 9, 0, 1]);
    // One that is refused no more is of the usual ones again, with what waits; what has ended leaves its place.
    refused[2]!.refusedInRow = 0;
    beginnings.forget(refused[3]!);
    vi.advanceTimersByTime(2);
    expect(begun.filter((i) => i === 2)).toHaveLength(5);
    beginnings.stop();
    vi.advanceTimersByTime(2);
    expect([beginnings.waiting, begun.length, begun.filter((i) => i === 3).length]).toEqual([0, 44, 1]);
  });

  test('so many wait of one address, and others have their part', () => {
    const beginnings = new Beginnings(160);
    const greedy = beginner();
    while (beginnings.tryBegin(greedy));
    let waiting = 0;
    while (beginnings.wait(greedy, () => {})) waiting++;
    expect([waiting, beginnings.hasRoom('127.0.0.1', 1), beginnings.wait(beginner('127.0.0.2'), () => {})]).toEqual([
      120,
      false,
      true,
    ]);
    beginnings.forget(greedy);
    expect([beginnings.waiting, beginnings.hasRoom('127.0.0.1', 1)]).toEqual([1, true]);
  });
});

describe('a flood of calls that are refused and come again at once', () => {
  /** Refuses strangers, and answers everybody else. */
  async function serveKnown(waitingMax?: number) {
    const refused = { count: 0 };
    const counted: Record<string, number> = {};
    const meter = {
      ...silentMeter,
      count: (name: string, by = 1, labels: Record<string, string> = {}) => {
        const key = [name, ...Object.values(labels)].join(' ');
        counted[key] = (counted[key] ?? 0) + by;
      },
    };
    const server = await serveGrpc(
      async (call: GrpcTransport) => {
        if (call.request.headers.get('x-caller') !== 'stranger') return echo(call);
        refused.count++;
        return NO_LOGIN;
      },
      {},
      { meter, limits: { ...(waitingMax !== undefined && { waitingMax }) } },
    );
    return { server, refused, counted };
  }

  /** So many refusals that the connection is known for it. */
  async function refuseAll(session: http2.ClientHttp2Session): Promise<void> {
    for (let i = 0; i < 16; i++) await called(session, [], STRANGER);
    // The server hears last that a stream has ended.
    for (let i = 0; i < 5; i++)
      await new Promise((resolve) => {
        session.ping(resolve);
      });
  }

  test('takes nothing of the turns of others, and is answered in its own time; a connection with a wrong login is not hung up on', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout'] });
    onTestFinished(() => {
      vi.useRealTimers();
    });
    const { server, refused } = await serveKnown();
    const sessions = Array.from({ length: 10 }, () => connect(server));
    let isOver = false;
    const statuses = new Set<number | null>();
    const again = async (session: http2.ClientHttp2Session) => {
      while (!isOver) {
        const call = new ClientCall(session, undefined, STRANGER);
        await call.ended;
        if (!isOver) statuses.add(call.status);
      }
    };
    const flood = sessions.flatMap((session) => Array.from({ length: 128 }, () => again(session)));
    // Until all connections are known for it.
    for (let before = -1; before !== refused.count; await called(connect(server), ['a'])) before = refused.count;
    const before = refused.count;
    expect(before).toBeLessThan(1_280);
    const other = connect(server);
    for (let i = 0; i < 20; i++) expect((await called(other, ['a'])).texts).toEqual(['a']);
    expect(refused.count).toBe(before);
    for (let i = 0; i < 100; i++) {
      await vi.advanceTimersByTimeAsync(1);
      await turn();
    }
    expect(refused.count - before).toBeGreaterThan(100);
    expect(refused.count - before).toBeLessThanOrEqual(202);
    expect([[...statuses], sessions.some(({ closed }) => closed)]).toEqual([[16], false]);
    isOver = true;
    for (const session of sessions) session.destroy();
    await Promise.all(flood);
  });

  test('an answered call makes a connection one of the usual ones again', async () => {
    const { server } = await serveKnown();
    const session = connect(server);
    for (let i = 0; i < 40; i++) expect((await called(session, [], STRANGER)).status).toBe(16);
    expect((await called(session, ['a'])).texts).toEqual(['a']);
    expect(session.closed).toBe(false);
  });

  test('where too many wait the connection is told to go: what has begun goes on, and new ones of the address stay unread until there is room', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout'] });
    onTestFinished(() => {
      vi.useRealTimers();
    });
    const { server, counted } = await serveKnown(2_048);
    const sessions = Array.from({ length: 13 }, () => connect(server));
    const long = sessions.map((session) => new ClientCall(session));
    for (const { stream } of long) stream.write(framed('a'));
    await Promise.all(long.map((call) => call.has(1)));
    for (const session of sessions) await refuseAll(session);
    const gone = Promise.race(
      sessions.map(
        (session) =>
          new Promise((resolve) => {
            session.once('goaway', resolve);
          }),
      ),
    );
    const waiting = sessions.flatMap((session) =>
      Array.from({ length: 120 }, () => new ClientCall(session, undefined, STRANGER)),
    );
    const refused = () =>
      waiting.filter(({ stream }) => stream.rstCode === http2.constants.NGHTTP2_REFUSED_STREAM).length;
    await gone;
    for (let turns = 0; turns < 10_000 && refused() < 1_560 - 1_538; turns++) await turn();
    expect(refused()).toBe(1_560 - 1_538);
    const [next, other] = [
      called(connect(server), ['a']),
      called(connect(server, { localAddress: '127.0.0.2' } as object), ['a']),
    ];
    const answered: string[] = [];
    void next.then(() => answered.push('next'));
    void other.then(() => answered.push('other'));
    for (let turns = 0; turns < 20_000 && answered.length < 2; turns++) {
      if (turns % 100 === 99) await vi.advanceTimersByTimeAsync(5);
      await turn();
    }
    expect([answered, counted]).toEqual([
      ['other', 'next'],
      { 'eventstore_http_connections_refused_total streams': 1 },
    ]);
    expect((await next).texts).toEqual(['a']);
    for (const { stream } of long) stream.end(framed('b'));
    await Promise.all(long.map(({ ended }) => ended));
    expect(long.map(({ texts }) => texts)).toEqual(long.map(() => ['a', 'b']));
  });

  test('a stop answers all that wait', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout'] });
    onTestFinished(() => {
      vi.useRealTimers();
    });
    const { server } = await serveKnown();
    const session = connect(server);
    await refuseAll(session);
    const calls = Array.from({ length: 100 }, () => new ClientCall(session, undefined, STRANGER));
    await Promise.race(calls.map(({ ended }) => ended));
    const stopped = server.stop(60_000);
    await vi.advanceTimersByTimeAsync(1);
    expect(await stopped).toBe(true);
    await Promise.all(calls.map(({ ended }) => ended));
    expect(new Set(calls.map(({ status }) => status))).toEqual(new Set([16, 14]));
  });
});
