import { describe, expect, test } from 'vitest';
import { silentLog } from '../../../core/ports/log.ts';
import type { Log } from '../../../core/ports/log.ts';
import { GrpcError, STATUS } from '../../../handlers/grpc/call.ts';
import { logCalls } from '../../../local/grpc/call-log.ts';
import { addressOf } from '../../../local/http/http-request.ts';
import { meterCalls } from '../../../local/metrics/grpc-metrics.ts';
import { createMetrics } from '../../../local/metrics/metrics.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { until } from '../backup/node-kit.ts';
import { parseExposition } from '../metrics/exposition.ts';
import { callHeaders, CANCEL, dataFrame, FRAME, headersFrame, RawClient, resetFrame } from './frames.ts';
import { called, ClientCall, connect, echo, framed, serveGrpc } from './clients.ts';

const STREAMS = '/event_store.client.streams.Streams/';

describe('calls are counted', () => {
  test('by method, with their messages and their time, open ones too; what is not here counts together', async () => {
    const clock = new ManualClock();
    const metrics = createMetrics(clock);
    const { watch, collector } = meterCalls({ meter: metrics, clock });
    metrics.collect(collector);
    const server = await serveGrpc(
      async (call) => {
        if (call.path.endsWith('Delete')) throw new GrpcError(STATUS.notFound, 'no');
        if (call.path.startsWith('/nobody')) return { httpStatus: 404 };
        await echo(call);
      },
      {},
      { watches: [watch] },
    );
    const session = connect(server);
    await called(session, ['a', 'b'], {}, `${STREAMS}Append`);
    await called(session, ['a'], {}, `${STREAMS}Delete`);
    await called(session, ['a'], {}, '/nobody.knows/It');
    const late = new ClientCall(session, '/event_store.client.users.Users/Create', { 'grpc-timeout': '1m' });
    await late.ended;
    expect([late.status, late.message]).toEqual([4, 'Deadline Exceeded']);
    const raw = await RawClient.to(server);
    raw.send(headersFrame(1, callHeaders(`${STREAMS}BatchAppend`)), dataFrame(1, framed('a')));
    await raw.has((frame) => frame.type === FRAME.data);

    const values = async () => parseExposition((await metrics.render(null)).body).values;
    const found = await values();
    const of = (name: string, labels: string) => found.get(`eventstore_${name}{${labels}}`);
    expect(of('incoming_grpc_calls_total', 'kind="total"')).toBe(5);
    expect(of('incoming_grpc_calls_total', 'kind="failed"')).toBe(3);
    expect(of('incoming_grpc_calls_total', 'kind="unimplemented"')).toBe(1);
    expect(of('incoming_grpc_calls_total', 'kind="deadline-exceeded"')).toBe(1);
    expect(found.get('eventstore_current_incoming_grpc_calls')).toBe(1);
    expect(of('grpc_open_calls', 'activity="batch-append"')).toBe(1);
    expect(of('grpc_open_calls', 'activity="append"')).toBe(0);
    expect(of('grpc_messages_total', 'activity="append",kind="received"')).toBe(2);
    expect(of('grpc_messages_total', 'activity="append",kind="sent"')).toBe(2);
    expect(of('grpc_messages_total', 'activity="batch-append",kind="sent"')).toBe(1);
    expect(of('grpc_calls_total', 'activity="append",status="OK"')).toBe(1);
    expect(of('grpc_calls_total', 'activity="delete",status="NOT_FOUND"')).toBe(1);
    expect(of('grpc_calls_total', 'activity="other",status="UNIMPLEMENTED"')).toBe(1);
    expect(of('grpc_calls_total', 'activity="users-create",status="DEADLINE_EXCEEDED"')).toBe(1);
    expect(of('grpc_method_duration_seconds_count', 'activity="append",status="successful"')).toBe(1);
    expect(of('grpc_method_duration_seconds_count', 'activity="delete",status="failed"')).toBe(1);

    raw.send(resetFrame(1, CANCEL));
    await until(
      async () => (await values()).get('eventstore_grpc_calls_total{activity="batch-append",status="CANCELLED"}') === 1,
    );
    expect((await values()).get('eventstore_current_incoming_grpc_calls')).toBe(0);
    // How long it was open says nothing.
    expect(
      (await values()).has('eventstore_grpc_method_duration_seconds_count{activity="batch-append",status="failed"}'),
    ).toBe(false);
  });

  test('and logged with what came of them, without credentials', async () => {
    const lines: [string, unknown][] = [];
    const log: Log = {
      ...silentLog,
      info: (message, fields) => {
        lines.push([message, fields]);
      },
    };
    const server = await serveGrpc(echo, {}, { watches: [logCalls({ log, clock: new ManualClock(), addressOf })] });
    await called(connect(server), ['a', 'b'], { authorization: 'Basic c2VjcmV0' });
    expect(lines).toEqual([
      [
        'gRPC call',
        { path: '/parcels.Tracking/Follow', status: 0, received: 2, sent: 2, elapsedMs: 0, address: '127.0.0.1' },
      ],
    ]);
  });
});
