import { SkuaError } from '../../core/base/errors.ts';

/** What the reference has at some path, or in some form, and Skua has not; README, "What is not here". */

/** Paths by how they begin, as whole segments, and what there would be. */
const ABSENT: readonly { readonly path: RegExp; readonly what: string }[] = [
  { path: /^\/projections?(?:\/|$)/, what: 'Projections are not here. Read the streams with GET, or follow them with Accept: text/event-stream, and project outside' },
  { path: /^\/subscriptions(?:\/|$)/, what: 'Persistent subscriptions have nothing at this path, and functions have none at all. Follow a stream with Accept: text/event-stream, and keep the id that was seen last' },
  { path: /^\/ui(?:\/|$)/, what: 'The web page is not here: the option DisableAdminUi takes it away, and functions have none' },
  { path: /^\/web(?:\/|$)/, what: 'The web page is not at this address. It is at /ui' },
  { path: /^\/histogram(?:\/|$)/, what: 'Histograms are not here. GET /metrics has some' },
  { path: /^\/(?:event_store|eventstore|kurrentdb|kurrent)\.[a-z]/i, what: 'gRPC is spoken over HTTP/2 only. GET / tells where the HTTP interface is' },
];

/** Where nothing is at a path. `not_here` names what the reference has there; `not_found` for all else. */
export function nothingAt(path: string, advice = ''): SkuaError {
  const absent = ABSENT.find((each) => each.path.test(path));
  if (absent === undefined) return new SkuaError('not_found', `There is nothing at ${path}.${advice}`);
  return new SkuaError('not_here', `${absent.what}. What else is not here stands in the README.`);
}

/** In front of what is possible, where somebody asks for, or sends, XML. */
export function xmlRemark(mediaTypes: string): string {
  return /\bxml\b/i.test(mediaTypes) ? 'XML is not spoken here, only JSON. ' : '';
}
