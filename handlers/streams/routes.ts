import { scavengeHistory, singleEvent, streamBackward, streamForward, streamHead } from './read-events.ts';
import { STREAM_DOCS as DOCS } from '../openapi/stream-paths.ts';
import { noteForAudit } from '../http/context.ts';
import { area, operation } from '../http/route.ts';
import type { Operation } from '../http/route.ts';
import { allBackward, allForward, allHead, filteredBackward, filteredForward, filteredHead } from './all-stream.ts';
import { appendHandler, appendIncoming, appendMetadata, deleteHandler } from './append-events.ts';
import { appendTogether } from './append-together.ts';
import { streamInfo } from './info-route.ts';
import { latestMetadata, metadataBackward, metadataByNumber, metadataForward } from './metadata-routes.ts';

const APPEND_TOGETHER = operation('stream', 'writes', appendTogether, DOCS.appendTogether);
const READ_INFO = operation('stream', 'here', streamInfo, DOCS.readInfo);
const READ_ALL = operation('stream', 'here', allHead, DOCS.readAll);
const APPEND = operation('stream', 'writes', appendHandler, DOCS.append);
const DELETE_STREAM = operation('stream', 'writes', deleteHandler, DOCS.deleteStream, 'stream.delete');
const READ_FILTERED = operation('stream', 'here', filteredHead, DOCS.readFiltered);
const PAGE_FILTERED_BACKWARD = operation('stream', 'here', filteredBackward, DOCS.pageFilteredBackward);
const PAGE_FILTERED_FORWARD = operation('stream', 'here', filteredForward, DOCS.pageFilteredForward);
const READ_METADATA = operation('stream', 'here', latestMetadata, DOCS.readMetadata);
const SET_METADATA = operation('stream', 'writes', appendMetadata, DOCS.setMetadata);
const PAGE_ALL_BACKWARD = operation('stream', 'here', allBackward, DOCS.pageAllBackward);
const PAGE_ALL_FORWARD = operation('stream', 'here', allForward, DOCS.pageAllForward);
const READ_STREAM = operation('stream', 'here', streamHead, DOCS.readStream);
const READ_EVENT = operation('stream', 'here', singleEvent, DOCS.readEvent);
const APPEND_INCOMING = operation('stream', 'writes', appendIncoming, DOCS.appendIncoming);
const READ_METADATA_EVENT = operation('stream', 'here', metadataByNumber, DOCS.readMetadataEvent);
const PAGE_BACKWARD = operation('stream', 'here', streamBackward, DOCS.pageBackward);
const PAGE_FORWARD = operation('stream', 'here', streamForward, DOCS.pageForward);
const PAGE_METADATA_BACKWARD = operation('stream', 'here', metadataBackward, DOCS.pageMetadataBackward);
const PAGE_METADATA_FORWARD = operation('stream', 'here', metadataForward, DOCS.pageMetadataForward);
const SCAVENGE_HISTORY = operation('stream', 'here', scavengeHistory, DOCS.scavengeHistory);

/**
 * `$all` in a path, and `$scavenges` below. The router makes a regular expression of them, where a bare `$` would mean
 * the end; requests are normalised to the escaped form before (http/url.ts).
 */
const ALL = '/streams/%24all';
const SCAVENGES = '/streams/%24scavenges';
const STREAM = '/streams/:stream';

/**
 * The paths under `/streams`. `$all` and literal segments come before variables. What scavenges have written is there
 * without AtomPub, too.
 */
export const STREAM_ROUTES = area({ tag: 'Streams', offBy: 'disableAtomPub', heedsRequiresLeader: true }, [
  { path: '/streams', methods: 'POST, OPTIONS', operations: { POST: APPEND_TOGETHER } },
  {
    path: ALL,
    methods: 'POST, DELETE, GET, GET, OPTIONS',
    operations: named('$all', { GET: READ_ALL, POST: APPEND, DELETE: DELETE_STREAM }),
  },
  { path: `${ALL}/filtered`, methods: 'GET, GET, OPTIONS', operations: { GET: READ_FILTERED } },
  { path: `${ALL}/filtered/:position/:count`, methods: 'GET, OPTIONS', operations: { GET: PAGE_FILTERED_BACKWARD } },
  {
    path: `${ALL}/filtered/:position/backward/:count`,
    methods: 'GET, OPTIONS',
    operations: { GET: PAGE_FILTERED_BACKWARD },
  },
  {
    path: `${ALL}/filtered/:position/forward/:count`,
    methods: 'GET, OPTIONS',
    operations: { GET: PAGE_FILTERED_FORWARD },
  },
  {
    path: `${ALL}/metadata`,
    methods: 'GET, POST, GET, OPTIONS',
    operations: named('$all', { GET: READ_METADATA, POST: SET_METADATA }),
  },
  { path: `${ALL}/:position/:count`, methods: 'GET, GET, OPTIONS', operations: { GET: PAGE_ALL_BACKWARD } },
  { path: `${ALL}/:position/backward/:count`, methods: 'GET, GET, OPTIONS', operations: { GET: PAGE_ALL_BACKWARD } },
  { path: `${ALL}/:position/forward/:count`, methods: 'GET, GET, OPTIONS', operations: { GET: PAGE_ALL_FORWARD } },
  {
    path: SCAVENGES,
    offBy: null,
    methods: 'POST, DELETE, GET, GET, OPTIONS',
    operations: named('$scavenges', { GET: READ_STREAM, POST: APPEND, DELETE: DELETE_STREAM }),
  },
  {
    path: STREAM,
    methods: 'POST, DELETE, GET, OPTIONS',
    operations: { GET: READ_STREAM, POST: APPEND, DELETE: DELETE_STREAM },
  },
  {
    path: `${STREAM}/metadata`,
    methods: 'GET, POST, GET, OPTIONS',
    operations: { GET: READ_METADATA, POST: SET_METADATA },
  },
  { path: `${STREAM}/info`, methods: 'GET, OPTIONS', operations: { GET: READ_INFO } },
  { path: `${STREAM}/:event`, methods: 'GET, OPTIONS', operations: { GET: READ_EVENT } },
  { path: `${STREAM}/incoming/:guid`, methods: 'POST, GET, OPTIONS', operations: { POST: APPEND_INCOMING } },
  { path: `${STREAM}/metadata/:event`, methods: 'GET, GET, OPTIONS', operations: { GET: READ_METADATA_EVENT } },
  { path: `${STREAM}/:event/:count`, methods: 'GET, OPTIONS', operations: { GET: PAGE_BACKWARD } },
  { path: `${STREAM}/:event/forward/:count`, methods: 'GET, OPTIONS', operations: { GET: PAGE_FORWARD } },
  { path: `${STREAM}/:event/backward/:count`, methods: 'GET, OPTIONS', operations: { GET: PAGE_BACKWARD } },
  { path: `${STREAM}/metadata/:event/:count`, methods: 'GET, OPTIONS', operations: { GET: PAGE_METADATA_BACKWARD } },
  {
    path: `${STREAM}/metadata/:event/forward/:count`,
    methods: 'GET, OPTIONS',
    operations: { GET: PAGE_METADATA_FORWARD },
  },
  {
    path: `${STREAM}/metadata/:event/backward/:count`,
    methods: 'GET, OPTIONS',
    operations: { GET: PAGE_METADATA_BACKWARD },
  },
  // Behind the pages of the stream itself, whose `forward` and `backward` are no event numbers.
  {
    path: `${SCAVENGES}/:scavenge/:event/:count`,
    offBy: null,
    methods: 'GET, OPTIONS',
    operations: { GET: SCAVENGE_HISTORY },
  },
]);

/** Operations of a path whose stream is a literal. */
function named(stream: string, operations: Record<string, Operation>): Record<string, Operation> {
  return Object.fromEntries(
    Object.entries(operations).map(([method, { access, place, handler, doc, audit }]) => [
      method,
      operation(
        access,
        place,
        (call, app) => {
          call.params = { ...call.params, stream };
          noteForAudit(call, { target: stream });
          return handler(call, app);
        },
        doc,
        audit,
      ),
    ]),
  );
}
