import { readFileSync } from 'node:fs';

/** An exchange as recorded in `http-exchanges.json`. */
export interface Exchange {
  readonly note?: string;
  readonly request: {
    readonly method: string;
    readonly path: string;
    readonly headers: Record<string, string>;
    readonly body?: string;
  };
  readonly response: { readonly status: number; readonly headers: Record<string, string>; readonly body?: string };
}

export interface Deviation {
  readonly index: number;
  /** `status`, `header <name>` or `body`. */
  readonly what: string;
  readonly expected: unknown;
  readonly actual: unknown;
  /** Why we decided otherwise than the reference; null when nobody did. */
  readonly reason: string | null;
}

export interface Replay {
  readonly deviations: Deviation[];
  readonly compared: number;
}

/** Where the recorded node ran; links in its replies begin with it. */
export const RECORDED_ENDPOINT = '127.0.0.1:2114';
const RECORDED_ORIGIN = `https://${RECORDED_ENDPOINT}`;
/** From here on the recording writes: times and ids of what is written differ in every replay. */
const FIRST_WRITE_INDEX = 59;
const COMPARED_HEADERS = [
  'content-type',
  'cache-control',
  'etag',
  'vary',
  'location',
  'es-currentversion',
  'access-control-allow-methods',
  'access-control-allow-origin',
  'www-authenticate',
];

interface Allowance {
  readonly reason: string;
  allows(exchange: Exchange, deviation: Omit<Deviation, 'reason'>): boolean;
}

/** Every way in which we differ from the recording on purpose (design decisions). */
const ALLOWANCES: readonly Allowance[] = [
  {
    reason: 'Error bodies are problem documents; the recorded text, where there is one, is the detail.',
    allows: ({ response }, { what, actual }) =>
      response.status >= 400 &&
      (what === 'header content-type'
        ? actual === 'application/problem+json; charset=utf-8'
        : what === 'body' && isProblem(actual, response.body ?? '')),
  },
  {
    reason: 'An event without an id: behind the recorded text the body says what to do.',
    allows: ({ response }, { what, expected, actual }) =>
      response.status === 307 && what === 'body' && String(actual).startsWith(`${String(expected)}\n`),
  },
  {
    reason: 'A missing role is 403, and 401 always names the scheme.',
    allows: ({ request, response }, { what, actual }) =>
      response.status === 401 &&
      (what === 'status'
        ? actual === 403 && request.headers['authorization'] !== undefined
        : what === 'header www-authenticate' && actual === 'Basic realm="Skua", charset="UTF-8"'),
  },
  {
    reason: 'Pages of other origins are let in only where an option names them.',
    allows: (_, { what, expected, actual }) =>
      what === 'header access-control-allow-origin' && expected === '*' && actual === null,
  },
  {
    reason: 'No cache that many use keeps what was sent to one caller, and none keeps for long what may be erased.',
    allows: (_, { what, expected, actual }) =>
      what === 'header cache-control' &&
      (expected === 'max-age=31536000, private'
        ? actual === 'max-age=60, private'
        : actual === `${String(expected)}, private`),
  },
  {
    reason: 'A reply varies by all that it depends on.',
    allows: (_, { what, expected, actual }) =>
      what === 'header vary' &&
      expected === 'Accept' &&
      actual === 'Accept, Accept-Encoding, Authorization, ES-ResolveLinkTos, Kurrent-ResolveLinkTos',
  },
  {
    reason: 'What failed about users is a problem document, too, with the members that clients look at.',
    allows: ({ request, response }, { what, actual }) =>
      what === 'body' &&
      request.path.startsWith('/users') &&
      response.status >= 400 &&
      isUserProblem(String(actual), response.body ?? ''),
  },
  {
    reason: 'This node is another one: version, ids, positions, and no TCP ports.',
    allows: ({ request, response }, { what, actual }) =>
      what === 'body' &&
      (request.path === '/info' || request.path === '/gossip') &&
      maskNode(String(actual)) === maskNode(String(response.body)),
  },
  {
    reason: 'A reload waits, and tells what it changed.',
    allows: ({ request }, { what, actual }) =>
      request.path === '/admin/reloadconfig' &&
      (what === 'header content-type'
        ? actual === 'application/json; charset=utf-8'
        : what === 'body' && 'certificatesChanged' in (JSON.parse(String(actual)) as object)),
  },
  {
    reason: 'Bad input that the reference answers with 500 is 400.',
    allows: ({ response }, { what, actual }) => what === 'status' && response.status === 500 && actual === 400,
  },
  {
    reason: 'A scavenge that is already running is 409.',
    allows: ({ request, response }, { what, actual }) =>
      what === 'status' && request.path === '/admin/scavenge' && response.status === 400 && actual === 409,
  },
  {
    reason:
      "Our memtable is written before the index is scavenged, and there are attribute indexes, so there are other tables; and the last chunk holds no records of that node's start.",
    allows: ({ request }, { what, expected, actual }) =>
      request.path.startsWith('/streams/%24scavenges') &&
      (what === 'header etag' ||
        (what === 'body' &&
          withoutTables(maskSizes(maskWritten(String(expected), true))) ===
            withoutTables(maskSizes(maskWritten(String(actual), true))))),
  },
  {
    reason: "The recorded node had written records of its own start behind the directory's last one.",
    allows: ({ request }, { what, expected, actual }) =>
      request.path.startsWith('/streams/%24all') &&
      (what === 'header etag' || (what === 'body' && withoutEnd(String(expected)) === withoutEnd(String(actual)))),
  },
  {
    reason: 'ES-ResolveLinkTos: False turns resolution off, as documented.',
    allows: ({ request }, { what }) =>
      what === 'body' && request.headers['ES-ResolveLinkTos']?.toLowerCase() === 'false',
  },
];

/** A feed of a scavenge's history without its tables, and without the numbers that follow from how many there are. */
function withoutTables(body: string): string {
  let feed: { entries?: { eventType?: string; summary?: string }[] };
  try {
    feed = JSON.parse(body);
  } catch {
    return body;
  }
  const entries = feed.entries?.filter((entry) => (entry.eventType ?? entry.summary) !== '$scavengeIndexCompleted');
  return JSON.stringify({ ...feed, entries }).replace(/\d+/g, 'N');
}

/** What `/info` and `/gossip` say of a node, without what differs from node to node. */
function maskNode(body: string): string {
  return body
    .replace(/\n {2}"dbVersion": "[^"]*",/, '')
    .replace(/"(esVersion|instanceId|epochId|timeStamp|httpEndPointIp|serverIp)": "[^"]*"/g, '"$1": ""')
    .replace(
      /"(\w*TcpPort|httpEndPointPort|serverPort|\w*[cC]heckpoint|lastCommitPosition|epochPosition|epochNumber)": -?\d+/g,
      '"$1": 0',
    );
}

/** A feed of `$all` without the position of its `previous` link, which at the head is the end of the log. */
function withoutEnd(body: string): string {
  return body.replace(/[0-9A-F]{32}(?=\/forward\/\d+",\n {6}"relation": "previous")/, '');
}

function isUserProblem(actual: string, recorded: string): boolean {
  const ours = JSON.parse(actual) as Record<string, unknown>;
  const theirs = JSON.parse(recorded) as Record<string, unknown>;
  return isProblem(actual, '') && ours['success'] === theirs['success'] && ours['error'] === theirs['error'];
}

function isProblem(actual: unknown, recorded: string): boolean {
  const problem =
    typeof actual === 'string' && actual.startsWith('{') ? (JSON.parse(actual) as Record<string, unknown>) : {};
  const isText = recorded !== '' && recorded !== '{}';
  return (
    typeof problem['code'] === 'string' &&
    typeof problem['title'] === 'string' &&
    typeof problem['detail'] === 'string' &&
    (!isText || problem['detail'] === recorded)
  );
}

export function loadExchanges(path: string | URL): Exchange[] {
  return JSON.parse(readFileSync(path, 'utf8')) as Exchange[];
}

/**
 * Sends the exchanges in their order, with the credentials of the recording, and compares what comes back: status,
 * headers, body character by character. `idle` waits for the scavenge, which in the recording had ended by the time
 * that its history was read. The id of our scavenge stands for that of the recorded one.
 */
export async function replayExchanges(
  handler: (request: Request) => Response | Promise<Response>,
  exchanges: readonly Exchange[],
  idle: () => Promise<void>,
): Promise<Replay> {
  const deviations: Deviation[] = [];
  let scavenge: { readonly recorded: string; readonly ours: string } | null = null;
  for (const [index, exchange] of exchanges.entries()) {
    const { method, path } = exchange.request;
    if (method === 'GET' && path.includes('scavenge')) await idle();
    const answer = await send(handler, scavenge === null ? exchange : withId(exchange, scavenge));
    if (method === 'POST' && path === '/admin/scavenge')
      scavenge ??= { recorded: scavengeIdIn(exchange.response.body ?? ''), ours: scavengeIdIn(answer.body) };
    deviations.push(
      ...compare(
        index,
        exchange,
        scavenge === null ? answer : { ...answer, body: answer.body.replaceAll(scavenge.ours, scavenge.recorded) },
      ),
    );
  }
  return { deviations, compared: exchanges.length };
}

function withId(
  exchange: Exchange,
  { recorded, ours }: { readonly recorded: string; readonly ours: string },
): Exchange {
  return { ...exchange, request: { ...exchange.request, path: exchange.request.path.replaceAll(recorded, ours) } };
}

function scavengeIdIn(body: string): string {
  return (JSON.parse(body) as { scavengeId: string }).scavengeId;
}

/** Deviations that nobody decided. */
export function unexplained(replay: Replay): Deviation[] {
  return replay.deviations.filter((deviation) => deviation.reason === null);
}

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: string;
}

async function send(
  handler: (request: Request) => Response | Promise<Response>,
  { request }: Exchange,
): Promise<Answer> {
  const headers = new Headers(request.headers);
  const body = request.body ?? null;
  if (body !== null) headers.set('content-length', String(Buffer.byteLength(body)));
  const response = await handler(
    new Request(RECORDED_ORIGIN + request.path, { method: request.method, headers, body }),
  );
  return { status: response.status, headers: response.headers, body: await response.text() };
}

function compare(index: number, exchange: Exchange, actual: Answer): Deviation[] {
  const found: Omit<Deviation, 'reason'>[] = [];
  const { response } = exchange;
  const isScavenge = exchange.request.path.includes('scavenge');
  const mask = (text: string): string => (index < FIRST_WRITE_INDEX ? text : maskWritten(text, isScavenge));
  if (actual.status !== response.status)
    found.push({ index, what: 'status', expected: response.status, actual: actual.status });
  for (const name of COMPARED_HEADERS) {
    const expected = maskGuid(response.headers[name] ?? null);
    const got = maskGuid(actual.headers.get(name));
    if (got !== expected) found.push({ index, what: `header ${name}`, expected, actual: got });
  }
  const missing = listed(response.headers['access-control-allow-headers']).filter(
    (name) => !listed(actual.headers.get('access-control-allow-headers')).includes(name),
  );
  if (missing.length > 0)
    found.push({ index, what: 'header access-control-allow-headers', expected: missing, actual: 'absent' });
  if (mask(actual.body) !== mask(response.body ?? ''))
    found.push({ index, what: 'body', expected: response.body ?? '', actual: actual.body });
  return found.map((deviation) => ({
    ...deviation,
    reason: ALLOWANCES.find((allowance) => allowance.allows(exchange, deviation))?.reason ?? null,
  }));
}

/** Times and ids of what was written, and of a scavenge how long things took. */
function maskWritten(text: string, isScavenge: boolean): string {
  const undated = text.replace(/"updated": "[^"]*"/g, '"updated": ""');
  return isScavenge
    ? undated
        .replace(/"eventId": "[^"]*"/g, '"eventId": ""')
        .replace(/\\"timeTaken\\": \\"\d\d:\d\d:\d\d(\.\d{7})?\\"/g, '\\"timeTaken\\": \\"\\"')
    : undated;
}

/**
 * In the history of a scavenge, what depends on how the index was cut into tables and on the length of the last chunk.
 */
function maskSizes(text: string): string {
  return text.replace(/\\"(level|entriesDeleted|entriesKept|spaceSaved)\\": -?\d+/g, '\\"$1\\": 0');
}

function maskGuid(value: string | null): string | null {
  return value?.replace(/\/incoming\/[0-9a-f-]{36}$/, '/incoming/…') ?? null;
}

function listed(value: string | null | undefined): string[] {
  return (value ?? '').split(', ').filter((name) => name !== '');
}
