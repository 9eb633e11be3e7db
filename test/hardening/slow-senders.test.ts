import * as net from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { ByteBudget, ByteShare } from '../../core/base/byte-budget.ts';
import { readBody } from '../../local/http/http-request.ts';
import { Flow } from '../../local/http/flow.ts';
import { called, ClientCall, connect, echo, framed, serveGrpc } from '../local/grpc/clients.ts';
import { serve } from '../local/tls/clients.ts';
import { ManualClock } from '../support/manual-clock.ts';

/** Whose body arrives by hand, as servers let bodies arrive. */
class Body {
  readonly share: ByteShare;
  isRead = true;
  ended: string | null = null;

  constructor(budget: ByteBudget, caller: string) {
    this.share = budget.share(null, caller, {
      makeWay: (refusal) => {
        this.ended = refusal.code;
        this.share.close();
      },
    });
  }

  arrive(bytes: number): void {
    if (this.share.add(bytes)) {
      this.share.readOn();
      return;
    }
    this.isRead = false;
    this.share.pause();
    this.share.room().then(
      () => {
        this.isRead = true;
        this.share.readOn();
      },
      (error: { code: string }) => {
        this.ended ??= error.code;
      },
    );
  }

  whole(): void {
    this.share.close();
  }
}

const PACE = 65_536;

describe('where bytes are short, who lags behind the pace goes', () => {
  test('416 beginnings that stall, each by another caller, make way for a fast upload', async () => {
    const clock = new ManualClock();
    const { uploads } = new Flow({}, clock);
    const stalled = Array.from({ length: 416 }, (_, i) => {
      const body = new Body(uploads, `stranger ${i}`);
      body.arrive(699_999);
      return body;
    });
    const fast = new Body(uploads, 'fast');
    for (let sent = 0, ms = 0; sent < 29 && ms < 25_000; ms += 100) {
      if (fast.isRead) {
        fast.arrive(1_000_000);
        sent++;
      }
      await clock.advance(100);
    }
    expect([fast.ended, fast.share.heldBytes]).toEqual([null, 29_000_000]);
    fast.whole();
    await clock.advance(60_000);
    expect(new Set(stalled.map(({ ended }) => ended))).toEqual(new Set(['too_busy', null]));
    expect([uploads.waiting, clock.sleeping]).toEqual([0, 0]);
    for (const { share } of stalled) share.close();
    expect(uploads.heldBytes).toBe(0);
  });

  test('who keeps to the pace is not ended, and who is not read neither; of two who lag the one that lags more', async () => {
    const clock = new ManualClock();
    const { uploads } = new Flow({ uploadBytesMax: 16_000_000 }, clock);
    const [steady, lags, lagsMore] = ['steady', 'lags', 'lags more'].map((caller) => new Body(uploads, caller)) as [
      Body,
      Body,
      Body,
    ];
    lags.arrive(3_100_000);
    lagsMore.arrive(3_000_000);
    const atPace = [steady];
    const seconds = async (count: number) => {
      for (let i = 0; i < count; i++) {
        if (steady.share.heldBytes > 5 * PACE) steady.share.release();
        for (const body of atPace) if (body.isRead) body.arrive(PACE / 4);
        await clock.advance(250);
        for (const body of atPace) if (body.isRead) body.arrive((PACE * 3) / 4);
        await clock.advance(750);
      }
    };
    await seconds(60);
    // Nobody was short of bytes.
    expect([lags.ended, lagsMore.ended]).toEqual([null, null]);
    const begin = async (caller: string, bytes = 2_300_000) => {
      const body = new Body(uploads, caller);
      body.arrive(bytes);
      await seconds(1);
      return body;
    };
    // One may go beyond; the next ones need the room of others.
    const first = await begin('first', 3_000_000);
    expect([first.isRead, lags.ended, lagsMore.ended]).toEqual([true, null, null]);
    const second = await begin('second');
    expect([second.isRead, lags.ended, lagsMore.ended]).toEqual([true, null, 'too_busy']);
    const third = await begin('third');
    expect([third.isRead, lags.ended]).toEqual([true, 'too_busy']);
    const unread = await begin('unread');
    atPace.push(first, second, third);
    await seconds(20);
    expect([steady, first, second, third, unread].map(({ ended }) => ended)).toEqual([null, null, null, null, null]);
    expect(unread.isRead).toBe(false);
    for (const body of [first, second, third]) body.whole();
    await clock.settle();
    expect(unread.isRead).toBe(true);
  });

  test('what came while the process stood still is read before anybody is judged', async () => {
    const clock = new ManualClock();
    let aheadMs = 0;
    const { uploads } = new Flow({ uploadBytesMax: 4_000_000 }, {
      ...clock,
      sleep: (ms, signal) => clock.sleep(ms, signal),
      monotonicMs: () => clock.monotonicMs() + aheadMs,
    } as ManualClock);
    const steady = new Body(uploads, 'steady');
    steady.arrive(2_200_000);
    await clock.advance(33_000);
    for (const caller of ['beyond', 'waits']) new Body(uploads, caller).arrive(700_000);
    aheadMs = 5_000;
    await clock.advance(1_000);
    expect(steady.ended).toBe(null);
    await clock.advance(1_000);
    expect(steady.ended).toBe('too_busy');
  });

  test('a share that gives nothing back is asked once', async () => {
    const clock = new ManualClock();
    const { uploads } = new Flow({ uploadBytesMax: 4_000_000 }, clock);
    let asked = 0;
    const bad = uploads.share(null, 'bad', {
      makeWay: () => {
        asked++;
      },
    });
    bad.add(2_400_000);
    bad.readOn();
    await clock.advance(60_000);
    const waits = new Body(uploads, 'waits');
    waits.arrive(600_000);
    await clock.advance(5_000);
    expect(asked).toBeLessThanOrEqual(1);
    bad.close();
    waits.share.close();
  });
});

/** All that was begun is here, or waits. */
async function arrived({ uploads }: Flow): Promise<void> {
  for (let turns = 0; turns < 100_000 && uploads.heldBytes < 1_200_000 && uploads.waiting === 0; turns++)
    await new Promise(setImmediate);
}

/** What comes while time goes on. */
async function passing<T>(clock: ManualClock, what: Promise<T>): Promise<T> {
  let isThere = false;
  void what.then(() => {
    isThere = true;
  });
  for (let turns = 0; turns < 100_000 && !isThere; turns++) {
    if (turns % 100 === 99) await clock.advance(100);
    await new Promise(setImmediate);
  }
  expect(isThere).toBe(true);
  return what;
}

describe('over real connections', () => {
  test('uploads over HTTP/1.1 that stall are refused with 503, and one beside them goes through', async () => {
    const clock = new ManualClock();
    const flow = new Flow({ uploadBytesMax: 2_000_000, stallMs: 600_000 }, clock);
    const server = await serve({
      flow,
      fetch: async (request) => {
        try {
          return new Response(String((await readBody(request, 30_000_000)).length));
        } catch (error) {
          return new Response((error as { code: string }).code, { status: 503 });
        }
      },
    });
    const begin = async (declared: number, bytes: number) => {
      const socket = net.connect(server.port, '127.0.0.1');
      onTestFinished(() => {
        socket.destroy();
      });
      let text = '';
      const answered = new Promise<string>((resolve) => {
        socket.on('data', (piece) => {
          text += piece.toString();
          if (text.includes('\r\n\r\n')) resolve(text);
        });
      });
      socket.on('error', () => {});
      await new Promise<void>((resolve) => {
        socket.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${declared}\r\n\r\n`);
        socket.write(Buffer.alloc(bytes), () => resolve());
      });
      return { socket, answered };
    };
    const stalled = [];
    for (let i = 0; i < 4; i++) stalled.push(await begin(400_000, 300_000));
    await arrived(flow);
    await clock.advance(10_000);
    const fast = await begin(700_000, 700_000);
    await passing(clock, fast.answered);
    expect((await fast.answered).split('\r\n')[0]).toBe('HTTP/1.1 200 OK');
    const refused = await Promise.race(stalled.map(({ answered }) => answered));
    expect(refused).toContain('HTTP/1.1 503');
    expect(refused).toContain('too_busy');
  });

  test('messages over gRPC that stall are told that the server is too busy, and one beside them goes through', async () => {
    const clock = new ManualClock();
    const flow = new Flow({ uploadBytesMax: 2_000_000, stallMs: 600_000 }, clock);
    const server = await serveGrpc(echo, { flow });
    const stalled = Array.from({ length: 4 }, () => {
      const call = new ClientCall(connect(server));
      call.stream.write(framed(Buffer.alloc(400_000)).subarray(0, 300_000));
      return call;
    });
    await arrived(flow);
    await clock.advance(10_000);
    const large = await passing(clock, called(connect(server), ['x'.repeat(700_000)]));
    expect([large.status, large.texts[0]?.length]).toEqual([0, 700_000]);
    await Promise.race(stalled.map(({ ended }) => ended));
    const ended = stalled.filter(({ status }) => !Number.isNaN(status));
    expect(ended.map(({ status, message }) => [status, message])).toContainEqual([14, 'Server Is Too Busy']);
    expect(ended.length).toBeLessThan(4);
  });

  test('a message that nobody reads waits for its reader, however long, while others are short of bytes', async () => {
    const clock = new ManualClock();
    const flow = new Flow({ uploadBytesMax: 2_000_000, stallMs: 600_000 }, clock);
    let letGo = () => {};
    const held = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    const server = await serveGrpc(
      async (call) => {
        if (call.request.headers.has('x-hold')) await held;
        await echo(call);
      },
      { flow },
    );
    const unread = new ClientCall(connect(server), undefined, { 'x-hold': '1' });
    unread.stream.end(Buffer.concat([framed('first'), framed(Buffer.alloc(300_000))]));
    const stalled = Array.from({ length: 4 }, () => {
      const call = new ClientCall(connect(server));
      call.stream.write(framed(Buffer.alloc(400_000)).subarray(0, 300_000));
      return call;
    });
    await arrived(flow);
    await clock.advance(10_000);
    expect((await passing(clock, called(connect(server), ['x'.repeat(700_000)]))).status).toBe(0);
    await Promise.race(stalled.map(({ ended }) => ended));
    expect(Number.isNaN(unread.status)).toBe(true);
    letGo();
    for (const { stream } of stalled) stream.close();
    await unread.ended;
    expect([unread.status, unread.texts.map(({ length }) => length)]).toEqual([0, [5, 300_000]]);
  });
});
