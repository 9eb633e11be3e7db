import { SkuaError } from '../../core/base/errors.ts';
import type { App, Call, Handler, Reply } from '../http/context.ts';
import { codingFor } from '../http/encoding.ts';
import type { PageCoding, PageFile, PageFiles } from '../http/page-files.ts';
import { matchesEtag } from '../http/reply.ts';
import { area, operation } from '../http/route.ts';
import { sharedBody } from '../http/shared-body.ts';
import { PAGE_DOCS } from '../openapi/page-paths.ts';
import { logIn, logOut, session } from './ui-session.ts';

/**
 * What a browser may do for the page: load what comes from this node, and nothing else; run no script that stands in
 * the page itself, so that an event that holds HTML can't become one even where the page makes a mistake; and show the
 * page in no frame, where another one could lead clicks on it.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "font-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ');

/** Of everything below `/ui`: what the page is allowed, and that others may neither embed nor read it. */
const GUARDS: Readonly<Record<string, string>> = {
  'content-security-policy': POLICY,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy':
    'accelerometer=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), microphone=(), payment=(), usb=()',
};

/** A name has a hash of what is in the file, so that it never stands for anything else. */
const FOR_EVER = 'public, max-age=31536000, immutable';
/** The page names the files of this version, and is asked for each time. */
const ASKED_EACH_TIME = 'no-cache';

/** As the built page names its files. */
const ASSET_REFERENCE = '="./assets/';

/**
 * Every address of the page: which view it shows is the page's own business. Its files are named from that address on,
 * so that a browser finds them whatever a proxy has put before `/ui`.
 */
export const page: Handler = async (call, app) => {
  const { text, etag } = await filesOf(call, app).page();
  const headers = { ...GUARDS, 'cache-control': ASKED_EACH_TIME, vary: 'Accept-Encoding', etag: `"${etag}"` };
  if (matchesEtag(call.request, etag)) return { status: 304, statusText: 'Not Modified', headers, body: null };
  const up = '../'.repeat(call.path.split('/').length - 2);
  return {
    status: 200,
    statusText: 'OK',
    headers: { ...headers, 'content-type': 'text/html; charset=utf-8' },
    body: text.replaceAll(ASSET_REFERENCE, `="${up}ui/assets/`),
  };
};

export const asset: Handler = async (call, app) => {
  const file = await filesOf(call, app).asset(call.params['name']!);
  if (file === null)
    throw new SkuaError(
      'not_found',
      'The page has no such file: it was loaded from another version of the node. Reload it.',
    );
  return fileReply(call, file);
};

function filesOf(call: Call, { features: { page } }: App): PageFiles {
  if (page !== null && page !== undefined) return page;
  call.methods = '';
  throw new SkuaError('not_found', `There is nothing at ${call.path}: this node has no page.`);
}

const CODINGS: ReadonlySet<PageCoding> = new Set<PageCoding>(['br', 'gzip']);

function fileReply(call: Call, { contentType, etag, bytes, encoded }: PageFile): Reply {
  const headers = { ...GUARDS, 'cache-control': FOR_EVER, vary: 'Accept-Encoding' };
  const coding = codingFor(call.request.headers.get('accept-encoding') ?? '', CODINGS) as PageCoding | null;
  const tag = coding === null ? `"${etag}"` : `"${etag}-${coding}"`;
  if (matchesEtag(call.request, etag))
    return { status: 304, statusText: 'Not Modified', headers: { ...headers, etag: tag }, body: null };
  const body = sharedBody(coding === null ? bytes : encoded[coding]);
  return {
    status: 200,
    statusText: 'OK',
    headers: {
      ...headers,
      'content-type': contentType,
      etag: tag,
      ...(coding !== null && { 'content-encoding': coding }),
    },
    body,
  };
}

const GET = 'GET, OPTIONS';
const PAGE = operation('anyone', 'here', page, PAGE_DOCS.page);

/** The paths of the page. Those that are no file of it all get the page itself, which shows the view of its address. */
export const PAGE_ROUTES = area({ tag: 'Page', feature: 'page', offBy: 'disableAdminUi' }, [
  { path: '/ui', methods: GET, operations: { GET: PAGE } },
  { path: '/ui/assets/:name', methods: GET, operations: { GET: operation('anyone', 'here', asset, PAGE_DOCS.asset) } },
  {
    path: '/ui/session',
    methods: 'GET, POST, DELETE, OPTIONS',
    operations: {
      GET: operation('anyone', 'here', session, PAGE_DOCS.session),
      POST: operation('anyone', 'here', logIn, PAGE_DOCS.logIn, 'login'),
      DELETE: operation('anyone', 'here', logOut, PAGE_DOCS.logOut, 'logout'),
    },
  },
  { path: '/ui/:path+', methods: GET, operations: { GET: operation('anyone', 'here', page, PAGE_DOCS.view) } },
]);
