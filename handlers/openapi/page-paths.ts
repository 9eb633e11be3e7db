import {
  arrayOf,
  BINARY,
  BOOLEAN,
  documentOf,
  json,
  media,
  object,
  ok,
  problems,
  ref,
  segment,
  TEXT,
} from './schema-parts.ts';
import type { SessionDocument } from '../documents/users.ts';
import type { HeaderDoc, OperationDoc, ResponseDoc, Schema } from '../http/route.ts';

/** The OpenAPI document of the page. */

const HEADERS: Readonly<Record<string, HeaderDoc>> = {
  'Content-Security-Policy': {
    description: 'Everything from this node, and no code in the page itself.',
    required: true,
    schema: TEXT,
  },
  'Cache-Control': {
    description: '`no-cache` for the page; its files are kept for ever, since their names say what is in them.',
    required: true,
    schema: TEXT,
  },
  ETag: { description: 'Of the bytes that are sent.', required: true, schema: TEXT },
};
const NOT_MODIFIED: ResponseDoc = { description: 'The copy of the caller is current.', headers: HEADERS };
const PAGE: Readonly<Record<number, ResponseDoc>> = {
  200: ok('The page.', media(TEXT, 'text/html'), HEADERS),
  304: NOT_MODIFIED,
};

export const PAGE_SCHEMAS: Readonly<Record<string, Schema>> = {
  Session: documentOf<SessionDocument>(
    {
      user: { type: ['string', 'null'], description: 'Null: not logged in, or the node runs without users.' },
      groups: arrayOf(TEXT),
      endsAt: {
        type: ['string', 'null'],
        format: 'date-time',
        description: 'Null if authenticated otherwise, such as by Basic credentials.',
      },
      security: { ...BOOLEAN, description: 'False: anyone can do anything, without a login.' },
      insecure: { ...BOOLEAN, description: 'The opposite.' },
      canLogOut: BOOLEAN,
      encrypted: { ...BOOLEAN, description: 'The node itself is reached over TLS.' },
      changesNeed: {
        type: 'string',
        description:
          'A header, with any value, that requests which change something must have when using a session, unless the browser sends their origin.',
      },
      isOperator: BOOLEAN,
      isAdministrator: BOOLEAN,
      isBackupKeeper: BOOLEAN,
    },
    'The user of the page and the permissions.',
  ),
};

const COOKIE: HeaderDoc = { description: 'The cookie `skua-session`, over TLS `__Host-skua-session`.', schema: TEXT };

export const PAGE_DOCS = {
  page: { summary: 'The page for browsers', responses: PAGE },
  view: {
    summary: 'The page, at the address of one of its views',
    description: 'The page shows the view of its address itself, so it is the same for all of them.',
    parameters: [segment('path', 'Names the view.', { type: 'string', minLength: 1 }, 'streams')],
    responses: PAGE,
  },
  session: {
    summary: 'The user of the page',
    responses: { 200: ok('The user.', json(ref('Session')), { 'Set-Cookie': COOKIE }) },
  },
  logIn: {
    summary: 'Log in for the page',
    description:
      'The cookie lasts for 12 hours, and ends when the user is changed in any way. It is valid for requests of the page only.',
    body: { required: true, content: json(object({ user: TEXT, password: TEXT }), { user: 'ops', password: 'o' }) },
    responses: {
      200: ok('The session has started.', json(ref('Session')), { 'Set-Cookie': { ...COOKIE, required: true } }),
      ...problems(400, 413, 415),
    },
  },
  logOut: {
    summary: 'Log out of the page',
    responses: {
      204: ok('The session has ended, on all members.', undefined, { 'Set-Cookie': { ...COOKIE, required: true } }),
    },
  },
  asset: {
    summary: 'A file of the page',
    parameters: [segment('name', "The file's name, as the page has it.", TEXT, 'main-ABCDEFGH.js')],
    responses: {
      200: ok('The file.', media(BINARY, 'text/javascript', 'text/css', 'image/svg+xml', 'font/woff2'), HEADERS),
      304: NOT_MODIFIED,
      ...problems(404),
    },
  },
} as const satisfies Readonly<Record<string, OperationDoc>>;
