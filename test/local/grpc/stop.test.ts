import { describe, expect, test } from 'vitest';
import { GrpcError, STATUS } from '../../../handlers/grpc/call.ts';
import { startServer } from '../../../local/http/server.ts';
import { http2Side } from '../../../local/grpc/connections.ts';
import { silentLog } from '../../../core/ports/log.ts';
import { startNode } from '../../../local/node/node.ts';
import { notReadyGrpc } from '../../../handlers/grpc.ts';
import { toBytes } from '../../grpc/codec.ts';
import { NodeLines } from '../backup/node-kit.ts';
import { load } from '../config/support.ts';
import { called, ClientCall, connect, echo, framed, serveGrpc } from './clients.ts';
import { callHeaders, END_STREAM, FRAME, dataFrame, headersFrame, RawClient } from './frames.ts';

const READY = 'Server Is Not Ready';

describe('the end of a server', () => {
  test('is told; what is under way is answered, who waits is told to go elsewhere, and nothing new begins', async () => {
    let answer = () => {};
    const asked = new Promise<void>((resolve) => {
      answer = resolve;
    });
    const signals: unknown[] = [];
    const server = await serveGrpc(async (call) => {
      const { signal } = call.request;
      if (call.path.endsWith('Unary')) {
        const message = await call.read(true);
        await call.read(true);
        await call.send(framed('begun'));
        await asked;
        await call.send(framed(message!));
      } else if (call.path.endsWith('Watch')) {
        await call.send(framed('watching'));
        await new Promise((resolve) => {
          signal.addEventListener('abort', resolve);
        });
        signals.push(signal.reason);
        throw new GrpcError(STATUS.cancelled, '');
      } else await echo(call);
    });
    const session = connect(server);
    const unary = new ClientCall(session, '/a.b/Unary');
    unary.stream.end(framed('a'));
    const watch = new ClientCall(session, '/a.b/Watch');
    watch.stream.end();
    const batch = new ClientCall(session, '/a.b/Batch');
    batch.stream.write(framed('b'));
    await Promise.all([unary.has(1), watch.has(1), batch.has(1)]);
    const raw = await RawClient.to(server);
    raw.send(headersFrame(1, callHeaders('/a.b/Unary')), dataFrame(1, framed('raw'), END_STREAM));
    await raw.has(({ type, stream }) => type === FRAME.data && stream === 1);

    const stopped = server.stop(10_000);
    await raw.has(({ type }) => type === FRAME.goaway);
    raw.send(headersFrame(3, callHeaders('/a.b/Unary')));
    await Promise.all([watch.ended, batch.ended]);
    expect([watch.status, watch.message, batch.status, batch.message]).toEqual([14, READY, 14, READY]);
    expect(signals).toEqual([{ status: 14, message: READY, trailers: {} }]);
    answer();
    await unary.ended;
    expect([unary.texts, unary.status]).toEqual([['begun', 'a'], 0]);
    expect(await stopped).toBe(true);
    await raw.closed;
    expect(raw.seen.filter(({ type, stream }) => type === FRAME.data && stream === 1).length).toBe(2);
    expect(raw.seen.filter(({ type, stream }) => stream === 3 && type !== FRAME.reset)).toEqual([]);
  });

  test('does not wait for what never ends, nor for connections on which nothing is under way', async () => {
    const side = http2Side({ log: silentLog, grpc: () => new Promise(() => {}) });
    const server = await startServer({
      hostname: '127.0.0.1',
      port: 0,
      fetch: () => new Response(''),
      log: silentLog,
      http2: side,
    });
    const idle = await RawClient.to(server);
    const endless = new ClientCall(connect(server));
    const begun = await RawClient.to(server);
    begun.send(headersFrame(1));
    await new Promise<void>((resolve) => {
      endless.stream.session!.ping(() => resolve());
    });
    expect(await server.stop(100)).toBe(false);
    await Promise.all([idle.closed, endless.ended, begun.closed]);
  });

  test('of an idle server is at once', async () => {
    const server = await serveGrpc(echo);
    const session = connect(server);
    await called(session, ['a']);
    expect(await server.stop(60_000)).toBe(true);
  });
});

describe('a node', () => {
  test('answers calls, counts and logs them beside requests', async () => {
    const log = new NodeLines();
    const node = await startNode({
      config: load([
        '--node-port',
        '0',
        '--mem-db',
        '--insecure',
        '--stream-existence-filter-size',
        '10000',
        '--log-http-requests',
      ]),
      log,
      env: {},
    });
    try {
      const session = connect(node);
      const call = await called(
        session,
        [''],
        {},
        '/event_store.client.server_features.ServerFeatures/GetSupportedMethods',
      );
      expect(call.status).toBe(0);
      expect(call.texts[0]).toContain('event_store.client.streams.streams');
      expect((await called(session, [''], {}, '/nobody.knows/It')).headers![':status']).toBe(404);
      expect(
        (await called(session, [''], {}, '/event_store.client.server_features.ServerFeatures/Nothing')).headers,
      ).toMatchObject({ 'grpc-status': '12', 'grpc-message': 'Method is unimplemented.' });
      const metrics = await (await fetch(`${node.url}/metrics`)).text();
      expect(metrics).toContain(
        'eventstore_grpc_calls_total{activity="server-features-get-supported-methods",status="OK"} 1',
      );
      expect(metrics).toContain('eventstore_incoming_grpc_calls_total{kind="unimplemented"} 2');
      expect(log.lines.filter((line) => JSON.stringify(line).includes('gRPC call')).length).toBe(3);
    } finally {
      await node.stop();
    }
  });

  test('that stops sends its subscribers and writers elsewhere', async () => {
    const node = await startNode({
      config: load(['--node-port', '0', '--mem-db', '--insecure', '--stream-existence-filter-size', '10000']),
      log: new NodeLines(),
      env: {},
    });
    const session = connect(node);
    const streams = '/event_store.client.streams.Streams/';
    const read = new ClientCall(session, `${streams}Read`);
    const all = { start: {} };
    read.stream.end(
      framed(
        toBytes('event_store.client.streams.ReadReq', {
          options: { all, subscription: {}, no_filter: {}, uuid_option: { string: {} } },
        }),
      ),
    );
    const batch = new ClientCall(session, `${streams}BatchAppend`);
    batch.stream.write(framed(''));
    const stats = new ClientCall(session, '/event_store.client.monitoring.Monitoring/Stats');
    stats.stream.end(framed(toBytes('event_store.client.monitoring.StatsReq', { refresh_time_period_in_ms: '60000' })));
    await Promise.all([read.has(2), stats.has(1), batch.has(1)]);
    await node.stop();
    expect([read, batch, stats].map(({ status, message }) => [status, message])).toEqual([
      [14, READY],
      [14, READY],
      [14, READY],
    ]);
  });

  test('that starts says that it is not ready', async () => {
    const call = await called(connect(await serveGrpc(notReadyGrpc)), ['']);
    expect(call.headers).toMatchObject({ 'grpc-status': '14', 'grpc-message': READY, 'content-length': '0' });
  });
});
