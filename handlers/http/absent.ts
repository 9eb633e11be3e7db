import { SkuaError } from '../../core/base/errors.ts';

/**
 * What the reference has at some path, or in some form, and Skua has not; local/guide/operate.md, "What is not here".
 */

/** Paths by how they begin, as whole segments, and what there would be. */
const ABSENT: readonly { readonly path: RegExp; readonly what: string }[] = [
  {
    path: /^\/projections?(?:\/|$)/,
    what: 'Projections are not supported. Read the streams with GET, or follow them with Accept: text/event-stream, and project in your application',
  },
  {
    path: /^\/subscriptions(?:\/|$)/,
    what: 'Persistent subscriptions have no such path here. Where nobody leads there are none at all: in functions, and on a node over object storage that is no member of a cluster. Follow a stream with Accept: text/event-stream, and keep the last id seen',
  },
  {
    path: /^\/ui(?:\/|$)/,
    what: 'The web page is not available: it is disabled by the option DisableAdminUi, or this is a function',
  },
  { path: /^\/web(?:\/|$)/, what: 'The web page is not at this address. It is at /ui' },
  { path: /^\/histogram(?:\/|$)/, what: 'Histograms are not supported. GET /metrics has some' },
  {
    path: /^\/(?:event_store|eventstore|kurrentdb|kurrent)\.[a-z]/i,
    what: 'gRPC is spoken over HTTP/2 only. GET / describes the HTTP interface',
  },
];

/** Where nothing is at a path. `not_here` names what the reference has there; `not_found` for all else. */
export function nothingAt(path: string, advice = ''): SkuaError {
  const absent = ABSENT.find((each) => each.path.test(path));
  if (absent === undefined) return new SkuaError('not_found', `There is nothing at ${path}.${advice}`);
  return new SkuaError(
    'not_here',
    `${absent.what}. The guide (local/guide/operate.md) lists what else is not supported.`,
  );
}

/** In front of what is possible, where a caller asks for, or sends, XML. */
export function xmlRemark(mediaTypes: string): string {
  return /\bxml\b/i.test(mediaTypes) ? 'XML is not supported, only JSON. ' : '';
}
