/** What the environment says about traces. */
export interface TracesWanted {
  /** Null when none are wanted. */
  readonly exporter: 'otlp' | 'console' | null;
  /** What was asked for and can't be had. */
  readonly warnings: readonly string[];
}

type Env = Readonly<Record<string, string | undefined>>;

/**
 * Whether the standard environment variables of OpenTelemetry ask for traces: an exporter, or an endpoint to send them
 * to. Without any of them there are none: a node talks to nobody on its own.
 */
export function tracesWanted(env: Env): TracesWanted {
  const none = (...warnings: string[]): TracesWanted => ({ exporter: null, warnings });
  const text = (name: string) => (env[name] ?? '').trim();
  if (text('OTEL_SDK_DISABLED').toLowerCase() === 'true') return none();
  const asked = text('OTEL_TRACES_EXPORTER').toLowerCase();
  if (asked === 'none') return none();
  if (asked === 'console') return { exporter: 'console', warnings: [] };
  if (asked !== '' && asked !== 'otlp') return none(`OTEL_TRACES_EXPORTER is '${asked}': no traces are made. Use otlp, console or none.`);
  const hasEndpoint = text('OTEL_EXPORTER_OTLP_ENDPOINT') !== '' || text('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT') !== '';
  if (asked === '' && !hasEndpoint) return none();
  const protocol = text('OTEL_EXPORTER_OTLP_TRACES_PROTOCOL') || text('OTEL_EXPORTER_OTLP_PROTOCOL') || 'http/protobuf';
  return { exporter: 'otlp', warnings: protocol === 'http/protobuf' ? [] : [`OTEL_EXPORTER_OTLP_PROTOCOL is '${protocol}': traces are sent as http/protobuf, usually to port 4318.`] };
}
