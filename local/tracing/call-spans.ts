import { SpanKind, SpanStatusCode } from '@opentelemetry/api';
import type { Attributes, Tracer } from '@opentelemetry/api';
import { STATUS } from '../../handlers/grpc/call.ts';
import { statusOf } from '../grpc/watch.ts';
import type { CallWatch } from '../grpc/watch.ts';
import { contextOf } from './server-spans.ts';
import type { TracingOptions } from './server-spans.ts';

/** Longest name of a service or method in a span: any client can call what is not there. */
const NAME_LENGTH_MAX = 256;
/** Statuses that are the server's fault, by the conventions for spans of gRPC. */
const FAULTS: ReadonlySet<number> = new Set([
  STATUS.unknown,
  STATUS.deadlineExceeded,
  STATUS.unimplemented,
  STATUS.internal,
  STATUS.unavailable,
  STATUS.dataLoss,
]);

/** A server span a call, with the attributes of the conventions for gRPC, in the trace of the caller. */
export function traceCalls(tracer: Tracer, { addressOf }: Pick<TracingOptions, 'addressOf'>): CallWatch {
  return (call) => {
    const { path, request } = call;
    const slash = path.lastIndexOf('/');
    const url = new URL(request.url);
    const agent = request.headers.get('user-agent');
    const address = addressOf?.(request) ?? null;
    const attributes: Attributes = {
      'rpc.system': 'grpc',
      'rpc.service': path.slice(1, Math.max(1, slash)).slice(0, NAME_LENGTH_MAX),
      'rpc.method': path.slice(slash + 1).slice(0, NAME_LENGTH_MAX),
      'server.address': url.hostname,
      ...(url.port !== '' && { 'server.port': Number(url.port) }),
      ...(agent !== null && { 'user_agent.original': agent }),
      ...(address !== null && { 'client.address': address }),
    };
    const span = tracer.startSpan(
      path.slice(1, NAME_LENGTH_MAX),
      { kind: SpanKind.SERVER, attributes },
      contextOf(request.headers),
    );
    return (ending) => {
      const status = statusOf(ending);
      span.setAttribute('rpc.grpc.status_code', status);
      if (FAULTS.has(status)) span.setStatus({ code: SpanStatusCode.ERROR });
      span.end();
    };
  };
}
