/**
 * What is used of OpenTelemetry, in a module of ours: in a bundle a late import of a CommonJS package finds no names,
 * but those of a module that imports it.
 */
export { diag, DiagLogLevel } from '@opentelemetry/api';
export { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
export { detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
export {
  BatchSpanProcessor,
  ConsoleSpanExporter,
  NodeTracerProvider,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-node';
