import type { Socket } from 'node:net';
import type { Log } from '../../core/ports/log.ts';
import type { Grpc } from '../../handlers/grpc.ts';
import { CONNECTION_LIFETIME_MS } from '../cluster/connection-lifetime.ts';
import type { Values } from '../../infra/runtime/config/options.ts';
import { logCalls } from '../grpc/call-log.ts';
import { http2Side } from '../grpc/connections.ts';
import type { ProxySide, TrustedProxies } from '../http/client-address.ts';
import { Flow } from '../http/flow.ts';
import { logRequests } from '../http/request-log.ts';
import { startServer } from '../http/server.ts';
import type { Fetch, HttpServer } from '../http/server.ts';
import { meterCalls } from '../metrics/grpc-metrics.ts';
import { meterRequests } from '../metrics/http-metrics.ts';
import type { Metrics } from '../metrics/metrics.ts';
import type { NodeCertificates } from '../tls/node-certificates.ts';
import type { NodeWorld } from './node-world.ts';
import type { Tracing } from '../tracing/tracing.ts';

interface ServerParts {
  readonly values: Values;
  /** Of a cluster, whose other members may know it by names that its certificate has no more. */
  readonly isMember: boolean;
  readonly certificates: NodeCertificates;
  readonly proxies: TrustedProxies;
  readonly addressOf: ProxySide['addressOf'];
  readonly tracing: Tracing | null;
  readonly world: NodeWorld;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly fetch: Fetch;
  readonly grpc: Grpc;
}

/** The server, and around what it serves all that watches requests. */
export function listen({
  values,
  isMember,
  certificates,
  proxies,
  addressOf,
  tracing,
  world,
  log,
  metrics,
  fetch: answer,
  grpc,
}: ServerParts): Promise<HttpServer> {
  const { machineClock: clock, keepsProcess } = world;
  const {
    NodeIp,
    NodePort,
    LogHttpRequests,
    MaxConnectionsPerAddress,
    MaxReplyBytesInFlight,
    MaxUploadBytesInFlight,
    ClientStallTimeout,
    KeepAliveInterval,
    KeepAliveTimeout,
  } = values;
  const flow = new Flow(
    {
      replyBytesMax: MaxReplyBytesInFlight,
      uploadBytesMax: MaxUploadBytesInFlight,
      stallMs: ClientStallTimeout * 1_000,
    },
    clock,
  );
  let fetch: Fetch = meterRequests(answer, { meter: metrics, clock });
  if (tracing !== null) fetch = tracing.traceRequests(fetch);
  if (LogHttpRequests) fetch = logRequests(fetch, { log, clock, addressOf });
  const limits = {
    perAddressMax: MaxConnectionsPerAddress,
    isExempt: (socket: Socket) => proxies.hasConnection(socket),
    log,
    meter: metrics,
    clock,
  };
  const calls = meterCalls({ meter: metrics, clock });
  metrics.collect(calls.collector);
  const watches = [calls.watch];
  if (tracing !== null) watches.push(tracing.traceCalls);
  if (LogHttpRequests) watches.push(logCalls({ log, clock, addressOf }));
  const http2 = http2Side({
    grpc,
    log,
    meter: metrics,
    watches,
    keepAliveIntervalMs: KeepAliveInterval,
    keepAliveTimeoutMs: KeepAliveTimeout,
  });
  return startServer({
    hostname: NodeIp,
    port: NodePort,
    fetch,
    log,
    limits,
    flow,
    http2,
    keepsProcess,
    ...(certificates.mode !== 'off' && {
      tls: { certificates: certificates.set, ...(isMember && { formerNamesMs: CONNECTION_LIFETIME_MS }) },
    }),
  });
}
