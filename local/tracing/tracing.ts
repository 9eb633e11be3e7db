import type { Tracer } from '@opentelemetry/api';
import type { Log } from '../../core/ports/log.ts';
import type { Route } from '../../handlers/http/route.ts';
import type { Fetch } from '../server.ts';
import { tracesWanted } from './wanted.ts';

/** What has not been sent gets this long when the node stops. */
const SHUTDOWN_MS = 3_000;
/** Warnings of the exporter reach the log at most this often. */
const WARN_EVERY_MS = 60_000;

export interface TracingOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly version: string;
  readonly instanceId: string;
  readonly log: Log;
  readonly routes: readonly Pick<Route, 'path'>[];
  readonly addressOf?: (request: Request) => string | null;
}

export interface Tracing {
  /** Makes a server span of every request that goes through. */
  traceRequests(fetch: Fetch): Fetch;
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
  const [api, sdk, resources, { traceRequests }] = await Promise.all([
    import('@opentelemetry/api'), import('@opentelemetry/sdk-trace-node'), import('@opentelemetry/resources'), import('./server-spans.ts'),
  ]);
  warnSometimes(api, options.log);
  const spans = exporter === 'console' ? new sdk.ConsoleSpanExporter() : new (await import('@opentelemetry/exporter-trace-otlp-proto')).OTLPTraceExporter();
  const provider = new sdk.NodeTracerProvider({
    resource: resources.resourceFromAttributes({ 'service.name': 'skua', 'service.version': options.version, 'service.instance.id': options.instanceId })
      // What OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES say wins.
      .merge(resources.detectResources({ detectors: [resources.envDetector] })),
    spanProcessors: [exporter === 'console' ? new sdk.SimpleSpanProcessor(spans) : new sdk.BatchSpanProcessor(spans)],
  });
  const tracer: Tracer = provider.getTracer('skua', options.version);
  options.log.info('traces are made, as the environment asks', { exporter });
  return {
    traceRequests: (fetch) => traceRequests(fetch, tracer, options),
    close: async () => {
      await within(SHUTDOWN_MS, provider.shutdown()).catch((error: unknown) => options.log.warn('the last traces could not be sent', { error }));
      api.diag.disable();
    },
  };
}

function warnSometimes({ diag, DiagLogLevel }: typeof import('@opentelemetry/api'), log: Log): void {
  let lastMs = Number.NEGATIVE_INFINITY;
  const warn = (message: string, ...details: unknown[]) => {
    const now = performance.now();
    if (now - lastMs < WARN_EVERY_MS) return;
    lastMs = now;
    log.warn('traces could not be sent or made as asked', { reason: message, details });
  };
  diag.setLogger({ error: warn, warn, info: () => {}, debug: () => {}, verbose: () => {} }, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
}

async function within(ms: number, work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => { timer = setTimeout(() => reject(new Error(`It took longer than ${ms} ms.`)), ms); });
  try {
    await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
