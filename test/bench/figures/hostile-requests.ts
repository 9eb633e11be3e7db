import { randomUUID } from 'node:crypto';
import { request } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { startHttpLoad } from '../child.ts';
import { alternate, row } from '../figure.ts';
import type { Figure, Row } from '../figure.ts';
import { startConnector, startWebhookNode } from '../webhooks.ts';

/** What one request of a stranger may add to the longest answer of somebody else, in milliseconds. */
const ADDED_MS_MAX = 50;
const CONNECTIONS = 4;
const PAUSE_MS = 5;
const WINDOW_MS_MAX = 1_000;
/** As long as a header may be. */
const HEADER_LENGTH = 31_000;
const SOCKETS = 256;

interface Asked {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** Sends one request as it stands, with no client's opinion about what is proper, and drops the answer. */
function send(port: number, { method = 'GET', path, headers = {}, body }: Asked): Promise<void> {
  return new Promise((resolve, reject) => {
    const sent = request(
      {
        host: '127.0.0.1',
        port,
        method,
        path,
        headers: { ...headers, ...(body !== undefined && { 'content-length': Buffer.byteLength(body) }) },
      },
      (reply) => {
        reply.on('end', resolve).on('error', reject).resume();
      },
    );
    sent.on('error', reject).end(body);
  });
}

const digits = `1.${'0'.repeat(64_000)}1`;
const filtered = (expression: string): Asked => ({
  path: `/streams/$all/filtered/head/forward/4096?context=eventtype&type=regex&data=${encodeURIComponent(expression)}`,
});
const append = (type: string, body: string, path = '/streams/hostile', eventType = 'T'): Asked => ({
  method: 'POST',
  path,
  headers: { 'content-type': type, 'es-eventtype': eventType, 'es-eventid': randomUUID() },
  body,
});

/** What a stranger sends, by the finding that it belongs to. */
const REQUESTS: readonly { readonly what: string; readonly asked: Asked }[] = [
  {
    what: 'slashes in X-Forwarded-Prefix',
    asked: { path: '/streams/hostile', headers: { 'x-forwarded-prefix': `a${'/'.repeat(HEADER_LENGTH)}a` } },
  },
  { what: 'blanks in Content-Type', asked: append(`application/json;charset=${' '.repeat(HEADER_LENGTH)}x`, '{}') },
  {
    what: 'semicolons in Accept',
    asked: { path: '/streams/hostile', headers: { accept: `a/b${';q=0.1'.repeat(HEADER_LENGTH / 6)}` } },
  },
  {
    what: 'a number of 64 kB, read as JSON',
    asked: { path: '/streams/digits/0', headers: { accept: 'application/json' } },
  },
  { what: 'a filter with nested repetition', asked: filtered('^(\\u{61}+)+$') },
  { what: 'a filter with counts', asked: filtered('^(?:a{1,99}){1,99}$') },
  {
    what: 'metadata of a wrong type',
    asked: append('application/json', '{"$acl":[[[]]]}', '/streams/hostile/metadata'),
  },
  { what: 'a page of large events', asked: { path: '/streams/large/head/backward/4096' } },
  { what: 'a path with dots', asked: { path: `/x${'/..'.repeat(5_000)}/admin` } },
  {
    what: 'a foreign origin',
    asked: {
      ...append('application/json', '{}'),
      headers: {
        'content-type': 'application/json',
        'es-eventtype': 'T',
        'es-eventid': randomUUID(),
        origin: 'https://example.org',
        'sec-fetch-site': 'cross-site',
      },
    },
  },
];

export const hostileRequests: Figure = {
  name: 'hostile-requests',
  how: `One event read over ${CONNECTIONS} connections with a pause of ${PAUSE_MS} ms, by a client that has the node for itself, and while another sends one hostile request after another. A value is the longest answer of a window less the longest of the window before it without the other client; the limit is what the goal allows.`,
  async run(settings) {
    const node = await startWebhookNode(join(settings.folder, 'hostile'));
    const generator = startHttpLoad();
    const ms = Math.min(settings.windowMs, WINDOW_MS_MAX);
    const longest = async (): Promise<number> => {
      return (
        await generator.load({
          port: node.port,
          connections: CONNECTIONS,
          ms,
          pauseMs: PAUSE_MS,
          read: '/streams/small/0',
        })
      ).maxMs;
    };
    /** The longest answers beside a client that goes on as long as this lasts. */
    const beside = async (hostile: () => Promise<void>): Promise<number> => {
      let isOver = false;
      const other = (async () => {
        while (!isOver) await hostile();
      })();
      const value = await longest();
      isOver = true;
      await other;
      return value;
    };
    const measure = async (what: string, hostile: () => Promise<void>): Promise<Row> => {
      settings.say(what);
      const { limit, ours } = await alternate(settings.windows, longest, () => beside(hostile));
      // A window that was quicker than the one before it has nothing added; ratios want a number above zero.
      const added = ours.map((value, i) => Math.max(0.01, value - limit[i]!));
      return row(
        `added by ${what}`,
        'ms',
        { limit: ours.map(() => ADDED_MS_MAX), ours: added },
        { kind: 'at most', value: 1 },
      );
    };
    try {
      await send(node.port, append('application/json', '{}', '/streams/small'));
      await send(node.port, append('application/json', `{"n":${digits}}`, '/streams/digits'));
      for (let i = 0; i < (settings.isSmoke ? 2 : 64); i++)
        await send(node.port, append('application/octet-stream', 'x'.repeat(1_048_576), '/streams/large'));
      // What makes an engine that backtracks try every way of dividing it.
      await send(node.port, append('application/json', '{}', '/streams/small', `${'a'.repeat(200)}!`));
      await startConnector(node.port, 'strangers', "function route() { return { stream: 'in', schema: 'T' }; }", {
        signature: undefined,
      });
      await longest();
      const rows: Row[] = [];
      for (const { what, asked } of REQUESTS) rows.push(await measure(what, () => send(node.port, asked)));
      rows.push(
        await measure(`${SOCKETS} silent senders of webhooks`, async () => {
          const sockets = Array.from({ length: SOCKETS }, () => connect(node.port, '127.0.0.1').on('error', () => {}));
          for (const socket of sockets)
            socket.write(
              'POST /webhook/strangers HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n',
            );
          await send(node.port, { path: '/health/live' });
          for (const socket of sockets) socket.destroy();
        }),
      );
      return rows;
    } finally {
      await generator.stop();
      await node.stop();
    }
  },
};
