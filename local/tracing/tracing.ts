import type { Tracer } from '@opentelemetry/api';
import type { Log } from '../../core/ports/log.ts';
import type { CallWatch } from '../grpc/watch.ts';
import type { Fetch } from '../http/server.ts';
import type { TracingOptions } from './server-spans.ts';

/** What has not been sent gets this long when the node stops. */
const SHUTDOWN_MS = 3_000;
/** Warnings of the exporter reach the log at most this often. */
const WARN_EVERY_MS = 60_000;

export interface Tracing {
  /** Makes a server span of every request that goes through. */
  traceRequests(fetch: Fetch): Fetch;
  /** Makes one of every call of gRPC. */
  readonly traceCalls: CallWatch;
  /** Sends what waits, in bounded time. */
  close(): Promise<void>;
}

/**
 * Traces by OpenTelemetry, if the environment asks for them; null otherwise, and then nothing of it is even loaded. An
 * exporter that can't be reached costs a warning now and then.
 */
export async function startTracing(options: TracingOptions): Promise<Tracing | null> {
  const { exporter, warnings } = tracesWanted(options.env);
  for (const warning of warnings) options.log.warn(warning);
  if (exporter === null) return null;
  const [sdk, { traceRequests }, { traceCalls }] = await Promise.all([
    import('./sdk.ts'),
    import('./server-spans.ts'),
    import('./call-spans.ts'),
  ]);
  warnSometimes(sdk, options.log);
  const spans = exporter === 'console' ? new sdk.ConsoleSpanExporter() : new sdk.OTLPTraceExporter();
  const provider = new sdk.NodeTracerProvider({
    resource: sdk
      .resourceFromAttributes({
        'service.name': 'skua',
        'service.version': options.version,
        'service.instance.id': options.instanceId,
      })
      // What OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES say wins.
      .merge(sdk.detectResources({ detectors: [sdk.envDetector] })),
    spanProcessors: [exporter === 'console' ? new sdk.SimpleSpanProcessor(spans) : new sdk.BatchSpanProcessor(spans)],
  });
  const tracer: Tracer = provider.getTracer('skua', options.version);
  options.log.info('tracing is enabled by the environment', { exporter });
  return {
    traceRequests: (fetch) => traceRequests(fetch, tracer, options),
    traceCalls: traceCalls(tracer, options),
    close: async () => {
      await within(SHUTDOWN_MS, provider.shutdown()).catch((error: unknown) =>
        options.log.warn('the last traces could not be exported', { error }),
      );
      sdk.diag.disable();
    },
  };
}

function warnSometimes({ diag, DiagLogLevel }: typeof import('./sdk.ts'), log: Log): void {
  let lastMs = Number.NEGATIVE_INFINITY;
  const warn = (message: string, ...details: unknown[]) => {
    const now = performance.now();
    if (now - lastMs < WARN_EVERY_MS) return;
    lastMs = now;
    log.warn('tracing is misconfigured or traces could not be exported', { reason: message, details });
  };
  diag.setLogger(
    { error: warn, warn, info: () => {}, debug: () => {}, verbose: () => {} },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
}

async function within(ms: number, work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`It took longer than ${ms} ms.`)), ms);
  });
  try {
    await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** What the environment says about traces. */
interface TracesWanted {
  /** Null when none are wanted. */
  readonly exporter: 'otlp' | 'console' | null;
  /** What was asked for and can't be had. */
  readonly warnings: readonly string[];
}

type Env = Readonly<Record<string, string | undefined>>;

/**
 * Whether the standard environment variables of OpenTelemetry ask for traces: an exporter, or an endpoint to send them
 * to. Without any of them there are none: a node makes no connection on its own.
 */
export function tracesWanted(env: Env): TracesWanted {
  const none = (...warnings: string[]): TracesWanted => ({ exporter: null, warnings });
  const text = (name: string) => (env[name] ?? '').trim();
  if (text('OTEL_SDK_DISABLED').toLowerCase() === 'true') return none();
  const asked = text('OTEL_TRACES_EXPORTER').toLowerCase();
  if (asked === 'none') return none();
  if (asked === 'console') return { exporter: 'console', warnings: [] };
  if (asked !== '' && asked !== 'otlp')
    return none(`OTEL_TRACES_EXPORTER is '${asked}': tracing is disabled. Use otlp, console or none.`);
  const hasEndpoint = text('OTEL_EXPORTER_OTLP_ENDPOINT') !== '' || text('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT') !== '';
  if (asked === '' && !hasEndpoint) return none();
  const protocol = text('OTEL_EXPORTER_OTLP_TRACES_PROTOCOL') || text('OTEL_EXPORTER_OTLP_PROTOCOL') || 'http/protobuf';
  return {
    exporter: 'otlp',
    warnings:
      protocol === 'http/protobuf'
        ? []
        : [`OTEL_EXPORTER_OTLP_PROTOCOL is '${protocol}': traces are sent as http/protobuf, usually to port 4318.`],
  };
}
