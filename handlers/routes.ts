import { currentScavenge, dryRunReport, explainStream, lastScavenge, scavengeProgress, startScavenge, stopScavenge } from './admin-scavenge.ts';
import { scavengeHistory } from './admin-scavenge-history.ts';
import type { Handler } from './context.ts';
import { live, welcome } from './health.ts';
import { allBackward, allForward, allHead, filteredBackward, filteredForward, filteredHead } from './streams-all.ts';
import { appendHandler, appendIncoming, appendMetadata } from './streams-append.ts';
import { deleteHandler } from './streams-delete.ts';
import { latestMetadata, metadataBackward, metadataByNumber, metadataForward } from './streams-metadata.ts';
import { singleEvent, streamBackward, streamForward, streamHead } from './streams-read.ts';

/** A path and what it answers. */
export interface Route {
  readonly path: string;
  /** `Access-Control-Allow-Methods`; with the repetitions that the reference shows where several of its templates match. */
  readonly methods: string;
  readonly handlers: Readonly<Record<string, Handler>>;
}

/**
 * `$all` in a path, and `$scavenges` below. The router makes a regular expression of them, where a bare `$` would mean
 * the end; requests are normalised to the escaped form before (path.ts).
 */
const ALL = '/streams/%24all';
const SCAVENGES = '/streams/%24scavenges';
const STREAM = '/streams/:stream';
const SCAVENGE = '/admin/scavenge';

/** Every path; the first that matches answers. `$all` and literal segments come before variables. */
export const ROUTES: readonly Route[] = [
  { path: ALL, methods: 'POST, DELETE, GET, GET, OPTIONS', handlers: named('$all', { GET: allHead, POST: appendHandler, DELETE: deleteHandler }) },
  { path: `${ALL}/filtered`, methods: 'GET, GET, OPTIONS', handlers: { GET: filteredHead } },
  { path: `${ALL}/filtered/:position/:count`, methods: 'GET, OPTIONS', handlers: { GET: filteredBackward } },
  { path: `${ALL}/filtered/:position/backward/:count`, methods: 'GET, OPTIONS', handlers: { GET: filteredBackward } },
  { path: `${ALL}/filtered/:position/forward/:count`, methods: 'GET, OPTIONS', handlers: { GET: filteredForward } },
  { path: `${ALL}/metadata`, methods: 'GET, POST, GET, OPTIONS', handlers: named('$all', { GET: latestMetadata, POST: appendMetadata }) },
  { path: `${ALL}/:position/:count`, methods: 'GET, GET, OPTIONS', handlers: { GET: allBackward } },
  { path: `${ALL}/:position/backward/:count`, methods: 'GET, GET, OPTIONS', handlers: { GET: allBackward } },
  { path: `${ALL}/:position/forward/:count`, methods: 'GET, GET, OPTIONS', handlers: { GET: allForward } },
  { path: SCAVENGES, methods: 'POST, DELETE, GET, GET, OPTIONS', handlers: named('$scavenges', { GET: streamHead, POST: appendHandler, DELETE: deleteHandler }) },
  { path: STREAM, methods: 'POST, DELETE, GET, OPTIONS', handlers: { GET: streamHead, POST: appendHandler, DELETE: deleteHandler } },
  { path: `${STREAM}/metadata`, methods: 'GET, POST, GET, OPTIONS', handlers: { GET: latestMetadata, POST: appendMetadata } },
  { path: `${STREAM}/:event`, methods: 'GET, OPTIONS', handlers: { GET: singleEvent } },
  { path: `${STREAM}/incoming/:guid`, methods: 'POST, GET, OPTIONS', handlers: { POST: appendIncoming } },
  { path: `${STREAM}/metadata/:event`, methods: 'GET, GET, OPTIONS', handlers: { GET: metadataByNumber } },
  { path: `${STREAM}/:event/:count`, methods: 'GET, OPTIONS', handlers: { GET: streamBackward } },
  { path: `${STREAM}/:event/forward/:count`, methods: 'GET, OPTIONS', handlers: { GET: streamForward } },
  { path: `${STREAM}/:event/backward/:count`, methods: 'GET, OPTIONS', handlers: { GET: streamBackward } },
  { path: `${STREAM}/metadata/:event/:count`, methods: 'GET, OPTIONS', handlers: { GET: metadataBackward } },
  { path: `${STREAM}/metadata/:event/forward/:count`, methods: 'GET, OPTIONS', handlers: { GET: metadataForward } },
  { path: `${STREAM}/metadata/:event/backward/:count`, methods: 'GET, OPTIONS', handlers: { GET: metadataBackward } },
  // Behind the pages of the stream itself, whose `forward` and `backward` are no event numbers.
  { path: `${SCAVENGES}/:scavenge/:event/:count`, methods: 'GET, OPTIONS', handlers: { GET: scavengeHistory } },
  { path: SCAVENGE, methods: 'POST, OPTIONS', handlers: { POST: startScavenge } },
  { path: `${SCAVENGE}/current`, methods: 'DELETE, GET, OPTIONS', handlers: { GET: currentScavenge, DELETE: stopScavenge } },
  { path: `${SCAVENGE}/last`, methods: 'GET, OPTIONS', handlers: { GET: lastScavenge } },
  { path: `${SCAVENGE}/progress`, methods: 'GET, OPTIONS', handlers: { GET: scavengeProgress } },
  { path: `${SCAVENGE}/:scavenge`, methods: 'DELETE, OPTIONS', handlers: { DELETE: stopScavenge } },
  { path: `${SCAVENGE}/dry-run/:scavenge`, methods: 'GET, OPTIONS', handlers: { GET: dryRunReport } },
  { path: `${SCAVENGE}/explain/:stream`, methods: 'GET, OPTIONS', handlers: { GET: explainStream } },
  { path: '/health/live', methods: 'GET, HEAD, OPTIONS', handlers: { GET: live, HEAD: live } },
  { path: '/', methods: 'GET, OPTIONS', handlers: { GET: welcome } },
];

/** Handlers of a path whose stream is a literal. */
function named(stream: string, handlers: Record<string, Handler>): Record<string, Handler> {
  return Object.fromEntries(Object.entries(handlers).map(([method, handler]) => [method, (call, app) => {
    call.params = { ...call.params, stream };
    return handler(call, app);
  }]));
}
