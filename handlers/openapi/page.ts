import { BINARY, media, ok, problems, segment, TEXT } from './parts.ts';
import type { HeaderDoc, OperationDoc, ResponseDoc } from '../http/route.ts';

/** The OpenAPI document of the page. */

const HEADERS: Readonly<Record<string, HeaderDoc>> = {
  'Content-Security-Policy': { description: 'Everything from this node, and no code in the page itself.', required: true, schema: TEXT },
  'Cache-Control': { description: '`no-cache` for the page; its files are kept for ever, since their names say what is in them.', required: true, schema: TEXT },
  ETag: { description: 'Of the bytes that are sent.', required: true, schema: TEXT },
};
const NOT_MODIFIED: ResponseDoc = { description: 'What the caller has is the newest.', headers: HEADERS };
const PAGE: Readonly<Record<number, ResponseDoc>> = { 200: ok('The page.', media(TEXT, 'text/html'), HEADERS), 304: NOT_MODIFIED };

export const PAGE_DOCS = {
  page: { summary: 'The page for browsers', responses: PAGE },
  view: {
    summary: 'The page, at the address of one of its views', description: 'The page itself shows the view of its address, so that it is the same for all of them.',
    parameters: [segment('path', 'Names the view.', { type: 'string', minLength: 1 }, 'streams')], responses: PAGE,
  },
  asset: {
    summary: 'A file of the page',
    parameters: [segment('name', 'The file\'s name, as the page has it.', TEXT, 'main-ABCDEFGH.js')],
    responses: { 200: ok('The file.', media(BINARY, 'text/javascript', 'text/css', 'image/svg+xml', 'font/woff2'), HEADERS), 304: NOT_MODIFIED, ...problems(404) },
  },
} as const satisfies Readonly<Record<string, OperationDoc>>;
