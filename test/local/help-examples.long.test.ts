import { randomUUID } from 'node:crypto';
import * as http2 from 'node:http2';
import { cp, mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import * as path from 'node:path';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { COMMANDS } from '../../local/commands/all-commands.ts';
import { SocketCall } from '../grpc/recorded/socket-call.ts';
import { issueNode, issueRoot } from '../support/certificates.ts';
import { freePorts } from '../support/free-ports.ts';
import { InProcessS3 } from '../support/s3/in-process-s3.ts';
import { ok, packed } from './packed.ts';
import type { Packed } from './packed.ts';
import { ran } from './spawn.ts';
import type { Ended, Spawned } from './spawn.ts';

/**
 * Every example of every help text is run, each in a folder that has what examples name: `./data`, `./backups`,
 * `route.js` and so on, beside a running node and buckets. Of each command one is run with the packed package, as are
 * those that stay; the others in this process, which has what the package was made of. A new example is run without
 * doing anything here; where it needs more, `MAKES` has it.
 */

const EXAMPLES = COMMANDS.flatMap(({ examples }) => examples.map(({ line }) => line));
/** What reads its credentials from the environment wants one of its own. */
const isPacked = (line: string): boolean =>
  line.includes('s3://') || COMMANDS.some(({ examples }) => examples[0]!.line === line);

/** Commands that stay until they are ended, and what they say when they are there. */
const SERVERS: readonly (readonly [RegExp, RegExp])[] = [
  [/^skua start(?!.*--what-if)/, /is listening on (\S+)\n/],
  [/^skua functions serve/, /The functions answer at (\S+),/],
  [/^skua cluster try/, /^(http:\S+) {2}data /m],
  [/^skua cluster status --watch/, /(\S+) leads, epoch/],
  [/^skua read .*--follow/, /0@orders-7 {2}placed/],
];

/** What must not be there when the command makes it. */
const MAKES: Readonly<Record<string, readonly string[]>> = {
  'skua backup copy --full --to ./monday': ['monday'],
  'skua backup copy --full --db ./data --to ./monday': ['monday'],
  'skua backup key ./repository.key': ['repository.key'],
  'skua proof export --db ./data --out anchor.json': ['anchor.json'],
  'skua proof export --event orders-7/0 --anchor anchor.json --out event.json': ['event.json'],
};
/** Ends other than 0, and why. */
const ENDS: Readonly<Record<string, readonly [number, string]>> = {
  'skua cluster reset --from ./data --storage s3://bucket/second': [4, 'It asks, and nobody is there to answer.'],
  'skua prove-erased --stream parcels --storage s3://bucket/prefix': [1, 'No stream of that name was there.'],
  'skua prove-erased --event 9c2f4a1b-7e3d-4b5a-a6c8-d9e0f1a2b3c4 --json': [1, 'No event of that id was there.'],
  'skua scavenge stop': [1, 'None runs here: one over so few events has ended before a second command is there.'],
};

/** Commands that look into a store on object storage. */
const LOOKS_INTO = /^skua (?:explain|prove-erased|verify) .*--storage s3:\/\/bucket/;

const AUTHORIZATION = `Basic ${btoa('admin:changeit')}`;
const GROUP_SETTINGS = {
  message_timeout_ms: 30_000,
  checkpoint_after_ms: 2_000,
  max_retry_count: 10,
  min_checkpoint_count: 10,
  max_checkpoint_count: 1_000,
  live_buffer_size: 500,
  read_batch_size: 20,
  history_buffer_size: 500,
  consumer_strategy: 'RoundRobin',
};

let all: Packed;
let template: string;
let s3: InProcessS3;
let node: { readonly spawned: Spawned; readonly url: string };
let env: Record<string, string>;
/** A moment to which the backups can be restored. */
let moment: string;

beforeAll(async () => {
  all = await packed();
  template = path.join(all.installed, 'template');
  await mkdir(path.join(template, 'ca'), { recursive: true });
  s3 = await InProcessS3.start();
  await emptyBuckets();
  env = {
    AWS_ENDPOINT_URL_S3: s3.endpoint,
    AWS_REGION: 'us-east-1',
    AWS_ACCESS_KEY_ID: 'a',
    AWS_SECRET_ACCESS_KEY: 'b',
    SKUA_USER: 'admin',
    SKUA_PASSWORD: 'changeit',
  };
  const spawned = all.shell('exec skua start --disable-tls --db ../node', {
    cwd: template,
    isServer: true,
    env: {
      SERVER_NODE_PORT: '0',
      SERVER_CHUNK_SIZE: '1MiB',
      SERVER_STREAM_EXISTENCE_FILTER_SIZE: '10000',
      SERVER_PROOF__CHAIN: 'true',
      SERVER_CONNECTORS__DATA_PROTECTION__TOKEN: 'a, token',
    },
  });
  node = { spawned, url: (await spawned.seen(/is listening on (\S+)\n/))[1]! };
  env = { ...env, SKUA_NODE: node.url, URL: `${node.url}/webhook/parcel-shop` };
  await makeTemplate();
});

afterAll(async () => {
  await node.spawned.end();
  await s3.close();
  await all.remove();
});

async function emptyBuckets(): Promise<void> {
  s3.state.buckets.clear();
  for (const bucket of ['backups', 'bucket', 'my-bucket'])
    await fetch(`${s3.endpoint}/${bucket}`, { method: 'PUT', headers: { authorization: 'any' } });
}

/** What examples name: a stream that was erased, connectors, a directory of a stopped node, backups, keys and files. */
async function makeTemplate(): Promise<void> {
  const ids = ['6f0d6a0e-3f0c-4a0b-9d07-6f1c5a7f2b11', '9c2f4a1b-7e3d-4b5a-a6c8-d9e0f1a2b3c4'];
  await request(
    'POST',
    '/streams/parcels',
    ids.map((eventId) => ({ eventId, eventType: 'weighed', data: { grams: 750 } })),
    'application/vnd.eventstore.events+json',
  );
  await request(
    'POST',
    '/streams/orders-7',
    [{ eventId: 'a6f1e0d2-3c4b-4d5e-8f60-718293a4b5c6', eventType: 'placed', data: { total: 12 } }],
    'application/vnd.eventstore.events+json',
  );
  await request('DELETE', '/streams/parcels', undefined, 'application/json', { 'es-harddelete': 'true' });
  const routingScript = Buffer.from('function route({ body }) { return { stream: "order-" + body.number }; }').toString(
    'base64',
  );
  await connector('orders', { routingScript });
  await connector('parcel-shop', { routingScript, signature: { scheme: 'Stripe', secret: 'only we two know' } });
  const root = await issueRoot();
  const { cert, key } = await issueNode(root);
  const files = {
    'route.js':
      'function route({ body, headers }) { return { stream: "order-" + body.number, schema: headers["x-event"] }; }\n',
    'order.json': '{"number": 1742}\n',
    key: 'only we two know\n',
    secret: 'another password1!\n',
    'node.crt': cert,
    'node.key': key,
    'ca/root.crt': root.cert,
    'node.yaml': 'CertificateFile: node.crt\nCertificatePrivateKeyFile: node.key\nTrustedRootCertificatesPath: ca\n',
  };
  for (const [name, text] of Object.entries(files)) await writeFile(path.join(template, name), text);
  await run('scavenge start --wait', template);
  await passMoment();
  for (const line of [
    'backup copy --full --to ./data',
    'proof export --db ./data --out anchor.json',
    'proof export --event orders-7/0 --anchor anchor.json --out event.json',
    'backup copy --full --to ./monday',
    'backup create --repository ./backups',
    'backup key ./repository.key',
  ])
    await run(line, template);
  // As a node writes them: a line each.
  await writeFile(
    path.join(template, 'anchors.jsonl'),
    `${JSON.stringify(JSON.parse(await readFile(path.join(template, 'anchor.json'), 'utf8')))}\n`,
  );
}

/** A moment between two events, in a chunk that was not scavenged. */
async function passMoment(): Promise<void> {
  const placed = () => {
    const events = [{ eventId: randomUUID(), eventType: 'placed', data: { total: 9 } }];
    return request('POST', '/streams/orders-8', events, 'application/vnd.eventstore.events+json');
  };
  await placed();
  moment = new Date().toISOString();
  await placed();
}

async function request(
  method: string,
  to: string,
  body?: unknown,
  type = 'application/json',
  headers: Record<string, string> = {},
): Promise<void> {
  const reply = await fetch(node.url + to, {
    method,
    headers: { authorization: AUTHORIZATION, 'content-type': type, ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  if (!reply.ok) throw new Error(`${to}: ${reply.status} ${await reply.text()}`);
}

async function connector(id: string, settings: object): Promise<void> {
  await request('POST', `/connectors/${id}`, { settings: { instanceTypeName: 'webhook-source', ...settings } });
  await request('POST', `/connectors/${id}/start`);
}

/** The groups that examples name, unless one before has left them. */
async function groups(): Promise<void> {
  await fetch(`${node.url}/subscriptions/orders/workers`, {
    method: 'PUT',
    headers: { authorization: AUTHORIZATION, 'content-type': 'application/json' },
    body: '{}',
  });
  // One of $all is made over gRPC alone, and clients send no credentials without TLS.
  const session = http2.connect(node.url);
  try {
    const creation = new SocketCall(
      session,
      '/event_store.client.persistent_subscriptions.PersistentSubscriptions/Create',
      { authorization: AUTHORIZATION },
      null,
    );
    creation.push({ options: { all: { end: {}, no_filter: {} }, group_name: 'audit', settings: GROUP_SETTINGS } });
    creation.halfClose();
    await vi.waitFor(
      () => {
        expect(creation.ending).not.toBeNull();
      },
      { timeout: 120_000 },
    );
  } finally {
    session.close();
  }
}

async function run(words: string, cwd: string): Promise<void> {
  await ok(all.shell(`skua ${words}`, { cwd, env }).ended);
}

/** A folder for one example. */
async function workFor(line: string): Promise<string> {
  const work = await mkdtemp(path.join(all.installed, 'work-'));
  await cp(template, work, { recursive: true });
  // A restore wants an empty directory, unless it is forced.
  const makes = line.startsWith('skua restore ') && !line.includes('--force') ? ['data'] : (MAKES[line] ?? []);
  for (const made of makes) await rm(path.join(work, made), { recursive: true });
  if (line.includes('s3://')) {
    await emptyBuckets();
    // Who names a key makes the repository; the others find one.
    if (line.includes('s3://backups') && !line.includes('--key-file')) {
      await passMoment();
      await run('backup create --repository s3://backups/a', work);
    }
    if (LOOKS_INTO.test(line)) await makeStore(work, line.startsWith('skua explain'));
  }
  // What an example before has started is over then; where none was there is nothing to watch.
  if (line.startsWith('skua scavenge start')) await all.shell('skua scavenge watch', { cwd: work, env }).ended;
  if (line.includes('--db /var/lib/skua') && !line.startsWith('skua start'))
    await rename(path.join(work, 'data'), path.join(work, 'lib'));
  if (line.startsWith('skua subscriptions ')) await groups();
  // The scavenge has written that chunk anew, under another version.
  if (line.startsWith('skua inspect ./data/chunk-'))
    await rename(
      path.join(
        work,
        'data',
        (await readdir(path.join(work, 'data'))).find((name) => name.startsWith('chunk-000000.'))!,
      ),
      path.join(work, 'data', 'chunk-000000.000000'),
    );
  if (line.includes('/mnt/large')) await mkdir(path.join(work, 'large'));
  return work;
}

/** A store in the bucket, with the stream that is looked for or without it. */
async function makeStore(work: string, hasStream: boolean): Promise<void> {
  await whileServing('skua start --storage s3://bucket/prefix --disable-tls --node-port 0', work, async (url) => {
    if (!hasStream) return;
    const { status } = await fetch(`${url}/streams/parcels`, {
      method: 'POST',
      headers: {
        authorization: AUTHORIZATION,
        'content-type': 'application/json',
        'es-eventtype': 'weighed',
        'es-eventid': crypto.randomUUID(),
      },
      body: '{}',
    });
    expect(status).toBe(201);
  });
}

/** The same on this machine: addresses, folders of the system, and a moment that has been. */
function here(line: string, work: string): string {
  return line
    .replaceAll(/http:\/\/127\.0\.0\.1:21(?:1[34]|23)/g, node.url)
    .replace('--node-port 2114', '--node-port 0')
    .replace('/var/lib/skua', path.join(work, 'lib'))
    .replace('/mnt/large', path.join(work, 'large'))
    .replace('/tmp/five', path.join(work, 'five'))
    .replace(/2026-07-01(?:T12:00:00Z)?/, moment);
}

test('there are examples for every command', () => {
  for (const { name, examples } of COMMANDS) expect(examples.length, name).toBeGreaterThan(0);
  for (const line of [...Object.keys(MAKES), ...Object.keys(ENDS)]) expect(EXAMPLES).toContain(line);
});

test.each(EXAMPLES)('%s', async (line) => {
  const work = await workFor(line);
  if (SERVERS.some(([which]) => which.test(line))) await whileServing(line, work, async () => {});
  else if (line.startsWith('curl '))
    await whileServing('skua functions serve', work, (url) => call(line.replace('http://127.0.0.1:2113', url), work));
  else await (isPacked(line) ? call : callHere)(here(line, work), work, ENDS[line]?.[0]);
  await rm(work, { recursive: true, force: true });
});

async function call(line: string, cwd: string, expected = 0): Promise<void> {
  judge(await all.shell(line, { cwd, env }).ended, expected);
}

/** Words as a shell takes them: in quotes or not, with variables and a file to read from. */
async function callHere(line: string, cwd: string, expected = 0): Promise<void> {
  const [command, from] = line.split(' < ') as [string, string?];
  const words = Array.from(
    command.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g),
    ([, double, single, bare]) => single ?? (double ?? bare)!.replace(/\$(\w+)/g, (_, name: string) => env[name] ?? ''),
  );
  expect(words.shift()).toBe('skua');
  const before = process.cwd();
  process.chdir(cwd);
  try {
    const ended = await ran(words, env, from === undefined ? undefined : Readable.from(await readFile(from)));
    judge(ended, expected);
    // JSON, too: so that the next prompt, or the next document, begins a line.
    expect(ended.out).toMatch(/(^|\n)$/);
  } finally {
    process.chdir(before);
  }
}

function judge({ code, out, err }: Ended, expected: number): void {
  expect({ code, ...(code !== expected && { out, err }) }).toEqual({ code: expected });
}

async function whileServing(line: string, work: string, use: (url: string) => Promise<void>): Promise<void> {
  const port = line.includes('--port')
    ? null
    : line.startsWith('skua functions')
      ? 0
      : line.startsWith('skua cluster try')
        ? (await freePorts(1))[0]!
        : null;
  const command = here(line, work) + (port === null ? '' : ` --port ${port}`);
  const spawned = all.shell(`exec ${command}`, {
    cwd: work,
    isServer: true,
    env: { ...env, ...(!line.includes('--node-port') && { SERVER_NODE_PORT: '0' }) },
  });
  const [, url] = await spawned.seen(SERVERS.find(([which]) => which.test(line))![1]);
  await use(url!);
  expect((await spawned.end()).code).toBe(0);
}
