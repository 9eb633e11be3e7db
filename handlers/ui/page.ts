import { SkuaError } from '../../core/base/errors.ts';
import type { App, Call, Handler, Reply } from '../http/context.ts';
import { codingFor } from '../http/encoding.ts';
import type { PageCoding, PageFile, PageFiles } from '../http/page-files.ts';
import { matchesEtag } from '../http/reply.ts';
import { sharedBody } from '../http/shared-body.ts';

/**
 * What a browser may do for the page: load what comes from this node, and nothing else; run no script that stands in the page itself, so that an event
 * that holds HTML can't become one even where the page makes a mistake; and show the page in no frame, where another one could lead clicks on it.
 */
const POLICY = [
  "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' data:", "connect-src 'self'", "font-src 'self'", "base-uri 'none'", "form-action 'self'", "frame-ancestors 'none'",
].join('; ');

/** Of everything below `/ui`: what the page is allowed, and that others may neither embed nor read it. */
const GUARDS: Readonly<Record<string, string>> = {
  'content-security-policy': POLICY,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'accelerometer=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), microphone=(), payment=(), usb=()',
};

/** A name has a hash of what is in the file, so that it never stands for anything else. */
const FOR_EVER = 'public, max-age=31536000, immutable';
/** The page names the files of this version, and is asked for each time. */
const ASKED_EACH_TIME = 'no-cache';

/** Every address of the page: which view it shows is the page's own business. */
export const page: Handler = async (call, app) => fileReply(call, await filesOf(call, app).page(), ASKED_EACH_TIME);

export const asset: Handler = async (call, app) => {
  const file = await filesOf(call, app).asset(call.params['name']!);
  if (file === null) throw new SkuaError('not_found', 'The page has no such file: it was loaded from another version of the node. Reload it.');
  return fileReply(call, file, FOR_EVER);
};

function filesOf(call: Call, { features: { page } }: App): PageFiles {
  if (page !== null && page !== undefined) return page;
  call.methods = '';
  throw new SkuaError('not_found', `There is nothing at ${call.path}: this node has no page.`);
}

const CODINGS: ReadonlySet<PageCoding> = new Set<PageCoding>(['br', 'gzip']);

function fileReply(call: Call, { contentType, etag, bytes, encoded }: PageFile, cacheControl: string): Reply {
  const headers = { ...GUARDS, 'cache-control': cacheControl, vary: 'Accept-Encoding' };
  const coding = codingFor(call.request.headers.get('accept-encoding') ?? '', CODINGS) as PageCoding | null;
  const tag = coding === null ? `"${etag}"` : `"${etag}-${coding}"`;
  if (matchesEtag(call.request, etag)) return { status: 304, statusText: 'Not Modified', headers: { ...headers, etag: tag }, body: null };
  const body = sharedBody(coding === null ? bytes : encoded[coding]);
  return { status: 200, statusText: 'OK', headers: { ...headers, 'content-type': contentType, etag: tag, ...(coding !== null && { 'content-encoding': coding }) }, body };
}
