import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { Log } from '../../../core/ports/log.ts';
import { silentLog } from '../../../core/ports/log.ts';
import { ROUTES } from '../../../handlers/routes.ts';
import { contextOf, routeNamer } from '../../../local/tracing/server-spans.ts';
import { startTracing, tracesWanted } from '../../../local/tracing/tracing.ts';
import { trace } from '@opentelemetry/api';

const ORIGIN = 'http://127.0.0.1:2113';
const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SPAN = 'b7ad6b7169203331';
const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
  vi.unstubAllEnvs();
});

describe('traces are wanted', () => {
  test.each([
    [{}, null],
    [{ OTEL_TRACES_EXPORTER: 'otlp' }, 'otlp'],
    [{ OTEL_TRACES_EXPORTER: 'console' }, 'console'],
    [{ OTEL_TRACES_EXPORTER: 'none', OTEL_EXPORTER_OTLP_ENDPOINT: 'http://x' }, null],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://x' }, 'otlp'],
    [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://x' }, 'otlp'],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: ' ' }, null],
    [{ OTEL_SDK_DISABLED: 'TRUE', OTEL_TRACES_EXPORTER: 'otlp' }, null],
    [{ OTEL_SERVICE_NAME: 'mine' }, null],
  ] as const)('with %j: %s', (env, exporter) => {
    expect(tracesWanted(env)).toEqual({ exporter, warnings: [] });
  });

  test('what can not be had is said', () => {
    expect(tracesWanted({ OTEL_TRACES_EXPORTER: 'zipkin' })).toMatchObject({
      exporter: null,
      warnings: [expect.stringContaining('zipkin')],
    });
    expect(tracesWanted({ OTEL_TRACES_EXPORTER: 'otlp', OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' })).toMatchObject({
      exporter: 'otlp',
      warnings: [expect.stringContaining('http/protobuf')],
    });
  });

  test('not at all: nothing is made', async () => {
    expect(await startTracing({ env: {}, version: '1', instanceId: 'i', log: silentLog, routes: ROUTES })).toBeNull();
  });
});

describe('the trace of a request', () => {
  const parentOf = (traceparent: string | null) =>
    trace.getSpanContext(contextOf({ get: (name) => (name === 'traceparent' ? traceparent : null) }));

  test('is that of its header', () => {
    expect(parentOf(`00-${TRACE}-${SPAN}-01`)).toMatchObject({
      traceId: TRACE,
      spanId: SPAN,
      traceFlags: 1,
      isRemote: true,
    });
    expect(parentOf(`01-${TRACE}-${SPAN}-00-more`)).toMatchObject({ traceFlags: 0 });
  });

  test.each([
    null,
    '',
    'nonsense',
    `ff-${TRACE}-${SPAN}-01`,
    `00-${TRACE}-${SPAN}-01-more`,
    `00-${'0'.repeat(32)}-${SPAN}-01`,
    `00-${TRACE}-${'0'.repeat(16)}-01`,
    `00-${TRACE.toUpperCase()}-${SPAN}-01`,
    'x'.repeat(10_000),
  ])('is a new one for %s', (header) => {
    expect(parentOf(header)).toBeUndefined();
  });

  test('has the name of its route', () => {
    const nameOf = routeNamer(ROUTES);
    expect(nameOf('/streams/orders')).toBe('/streams/{stream}');
    expect(nameOf('/streams/$all')).toBe('/streams/$all');
    expect(nameOf('/streams/%24all')).toBe('/streams/$all');
    expect(nameOf('/stats/proc/diskIo')).toBe('/stats/{path}');
    expect(nameOf('/')).toBe('/');
    expect(nameOf('/nothing/here')).toBeNull();
  });
});

describe('spans', () => {
  test('reach a collector with what is known of the request, before the node has stopped', async () => {
    const collector = await startCollector();
    vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', collector.url);
    vi.stubEnv('OTEL_RESOURCE_ATTRIBUTES', 'deployment.environment=test');
    vi.stubEnv('OTEL_SERVICE_NAME', 'parcels-store');
    const tracing = (await startTracing({
      env: process.env,
      version: '1.2.3',
      instanceId: 'instance',
      log: silentLog,
      routes: ROUTES,
      addressOf: () => '10.1.2.3',
    }))!;
    const app = tracing.traceRequests(
      async ({ url }) => new Response(null, { status: url.endsWith('/boom') ? 500 : 200 }),
    );
    await app(
      new Request(`${ORIGIN}/streams/orders?secret=query`, {
        headers: { traceparent: `00-${TRACE}-${SPAN}-01`, 'user-agent': 'tester/1' },
      }),
    );
    await app(new Request(`${ORIGIN}/boom`, { method: 'PATCH' }));
    await expect(
      tracing.traceRequests(async () => {
        throw new Error('no');
      })(new Request(`${ORIGIN}/ping`)),
    ).rejects.toThrow('no');
    await tracing.close();

    expect(collector.paths).toContain('/v1/traces');
    const spans = collector.spans();
    expect(spans.map(({ name }) => name)).toEqual(['GET /streams/{stream}', 'HTTP', 'GET /ping']);
    expect(spans[0]).toMatchObject({ traceId: TRACE, parentSpanId: SPAN, kind: 2 });
    expect(spans[0]!.text).toContain('/streams/{stream}');
    expect(spans[0]!.text).toContain('http.response.status_code');
    expect(spans[0]!.text).toContain('tester/1');
    expect(spans[0]!.text).toContain('10.1.2.3');
    expect(collector.text()).toContain('parcels-store');
    expect(collector.text()).toContain('deployment.environment');
    expect(collector.text()).toContain('service.instance.id');
    expect(collector.text()).not.toContain('secret');
    expect(spans[1]!.traceId).not.toBe(TRACE);
    expect(spans[1]!.statusCode).toBe(2);
    expect(spans[2]!.statusCode).toBe(2);
  });

  test('of calls of gRPC have their method and status, in the trace of the caller', async () => {
    const collector = await startCollector();
    vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', collector.url);
    const tracing = (await startTracing({
      env: process.env,
      version: '1',
      instanceId: 'instance',
      log: silentLog,
      routes: ROUTES,
      addressOf: () => '10.1.2.3',
    }))!;
    const path = '/event_store.client.streams.Streams/Read';
    const request = new Request(`${ORIGIN}${path}`, {
      method: 'POST',
      headers: { traceparent: `00-${TRACE}-${SPAN}-01`, 'user-agent': 'grpc-node-js/1' },
    });
    const call = { path, request, received: 1, sent: 0 };
    tracing.traceCalls(call)({ status: 5, message: '', trailers: {} });
    tracing.traceCalls(call)({ status: 13, message: '', trailers: {} });
    tracing.traceCalls(call)(null);
    await tracing.close();
    const spans = collector.spans();
    expect(
      spans.map(({ name, traceId, parentSpanId, kind, statusCode }) => ({
        name,
        traceId,
        parentSpanId,
        kind,
        statusCode,
      })),
    ).toEqual(
      [0, 2, 0].map((statusCode) => ({ name: path.slice(1), traceId: TRACE, parentSpanId: SPAN, kind: 2, statusCode })),
    );
    for (const text of [
      'rpc.system',
      'event_store.client.streams.Streams',
      'rpc.grpc.status_code',
      'grpc-node-js/1',
      '10.1.2.3',
    ])
      expect(spans[0]!.text).toContain(text);
  });

  test('that nobody takes cost a warning and no more', async () => {
    vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', 'http://127.0.0.1:9');
    vi.stubEnv('OTEL_EXPORTER_OTLP_TIMEOUT', '300');
    const warnings: string[] = [];
    const log: Log = {
      ...silentLog,
      warn: (message) => {
        warnings.push(message);
      },
    };
    const tracing = (await startTracing({ env: process.env, version: '1', instanceId: 'i', log, routes: ROUTES }))!;
    const reply = await tracing.traceRequests(async () => new Response('pong'))(new Request(`${ORIGIN}/ping`));
    expect(await reply.text()).toBe('pong');
    await tracing.close();
    expect(warnings.length).toBeLessThanOrEqual(2);
  });
});

interface SeenSpan {
  readonly name: string;
  readonly traceId: string;
  readonly parentSpanId: string;
  readonly kind: number;
  readonly statusCode: number;
  readonly text: string;
}

/** Takes what exporters post, and reads as much of the protobuf as tests need. */
async function startCollector() {
  const bodies: Buffer[] = [];
  const paths: string[] = [];
  const server = createServer((request, reply) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      paths.push(request.url!);
      bodies.push(Buffer.concat(parts));
      reply.writeHead(200, { 'content-type': 'application/x-protobuf' }).end();
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  closing.push(
    () =>
      new Promise((resolve) => {
        server.close(resolve);
        server.closeAllConnections();
      }),
  );
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    paths,
    text: () => bodies.map((body) => body.toString('latin1')).join(''),
    // ExportTraceServiceRequest.resource_spans(1).scope_spans(2).spans(2)
    spans: (): SeenSpan[] =>
      bodies
        .flatMap((body) => fields(body, 1))
        .flatMap((each) => fields(each, 2))
        .flatMap((each) => fields(each, 2))
        .map(spanOf),
  };
}

function spanOf(bytes: Buffer): SeenSpan {
  const [status] = fields(bytes, 15);
  return {
    name: fields(bytes, 5)[0]!.toString(),
    traceId: fields(bytes, 1)[0]!.toString('hex'),
    parentSpanId: fields(bytes, 4)[0]?.toString('hex') ?? '',
    kind: number(bytes, 6),
    statusCode: status === undefined ? 0 : number(status, 3),
    text: bytes.toString('latin1'),
  };
}

/** The fields of a protobuf message: length-delimited ones as bytes, others as numbers. */
function* walk(bytes: Buffer): Generator<{ readonly field: number; readonly value: Buffer | number }> {
  let at = 0;
  const varint = () => {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = bytes[at++]!;
      value += (byte & 127) * factor;
      if (byte < 128) return value;
    }
  };
  while (at < bytes.length) {
    const tag = varint();
    const type = tag & 7;
    const length = type === 2 ? varint() : type === 1 ? 8 : type === 5 ? 4 : 0;
    const value = type === 0 ? varint() : bytes.subarray(at, at + length);
    at += length;
    yield { field: tag >> 3, value };
  }
}

function fields(bytes: Buffer, wanted: number): Buffer[] {
  return [...walk(bytes)].filter(({ field }) => field === wanted).map(({ value }) => value as Buffer);
}

function number(bytes: Buffer, wanted: number): number {
  return Number([...walk(bytes)].find(({ field }) => field === wanted)?.value ?? 0);
}
