import { randomUUID } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { BrowserContext, Page } from 'playwright-core';
import { NodeClient } from '../../local/cli/node-client.ts';
import { DemoConnector } from '../../local/demo/connector.ts';
import { loadStreams } from '../../local/demo/demo-payloads.ts';
import type { DemoDelivery } from '../../local/demo/demo-payloads.ts';
import { StreamClient } from '../../local/demo/play-demo.ts';
import { Member } from '../cluster/processes/member.ts';
import { issueNode, issueRoot } from '../support/certificates.ts';
import { freePorts } from '../support/free-ports.ts';
import { launched } from './chromium.ts';

/**
 * `npm run pictures`: takes the pictures of the guide anew, from a node that gets the webhooks of `skua demo` while a
 * browser looks at it. Takes some minutes.
 */

const FOLDER = fileURLToPath(new URL('../../local/ui/pictures/', import.meta.url));
const PASSWORD = 'a Password of pictures 1';
const SIZE = { width: 1_280, height: 800 };
const SCALE = 2;
/** Of a picture: the README is read over slow lines, too. */
const BYTES_MAX = 250_000;
/**
 * How long webhooks come while the page draws its charts, and how many are under way together, which rises and falls.
 */
const TRAFFIC_MS = 52_000;
const WAVE_MS = 19_000;
const CALLS_MAX = 6;
const LOOK_MS = 100;
/** All payloads are sent so often beforehand, so that there are some chunks. */
const ROUNDS = 7;
const LARGEST = 'github-Codertocat-Hello-World';
/** Of the streams that get most, these keep little; and some are deleted. */
const KEPT: Readonly<Record<string, number>> = { [LARGEST]: 1_800, 'github-Octocoders': 20 };
const DELETED: readonly string[] = ['github-Octocoders-Hello-World', 'github-octo-org-octo-repo'];

/** The deliveries of the demo again, as new ones. */
function anew(deliveries: readonly DemoDelivery[]): DemoDelivery[] {
  return deliveries.map((delivery) => ({ ...delivery, deliveryId: randomUUID() }));
}

async function together(connector: DemoConnector, deliveries: readonly DemoDelivery[], atOnce: number): Promise<void> {
  const left = deliveries[Symbol.iterator]();
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      for (const delivery of left) await connector.post(delivery);
    }),
  );
}

/** More and fewer webhooks in turns, and readers of what they have written, until it ends. */
async function traffic(
  connector: DemoConnector,
  client: StreamClient,
  all: readonly DemoDelivery[],
  streams: readonly string[],
  ending: AbortSignal,
): Promise<void> {
  const begin = Date.now();
  for (let i = 0; !ending.aborted; i++) {
    const wave = 0.5 - 0.5 * Math.cos((2 * Math.PI * (Date.now() - begin)) / WAVE_MS);
    const calls = 1 + Math.round(wave * (CALLS_MAX - 1));
    const from = (i * CALLS_MAX) % all.length;
    await Promise.all([
      together(connector, anew(all.slice(from, from + 2 * calls)), calls),
      ...(i % 5 === 0 ? [client.read(streams[i % streams.length]!)] : []),
      sleep(100 + 40 * (CALLS_MAX - calls)),
    ]);
  }
}

/** Starts something, and waits until there is nothing more to be told of it. */
async function done(client: NodeClient, start: string, progress: string): Promise<void> {
  const { status } = await client.call('POST', start);
  if (status >= 400) throw new Error(`${start} answers ${status}.`);
  while ((await client.call('GET', progress)).status !== 404) await sleep(LOOK_MS);
}

async function picture(page: Page, name: string): Promise<void> {
  await page.mouse.move(0, 0);
  const session = await page.context().newCDPSession(page);
  // Without loss at this quality, and a third of a PNG.
  const { data } = await session.send('Page.captureScreenshot', { format: 'webp', quality: 100 });
  const bytes = Buffer.from(data, 'base64');
  process.stdout.write(`${name}.webp ${Math.round(bytes.length / 1_000)} kB\n`);
  if (bytes.length > BYTES_MAX) throw new Error(`${name}.webp has ${bytes.length} bytes, more than ${BYTES_MAX}.`);
  await writeFile(path.join(FOLDER, `${name}.webp`), bytes);
}

async function opened(context: BrowserContext, address: string): Promise<Page> {
  const page = await context.newPage();
  await page.goto(address);
  return page;
}

async function takeAll(url: string, authorities: string, context: BrowserContext): Promise<void> {
  const client = new NodeClient(url, { SKUA_USER: 'admin', SKUA_PASSWORD: PASSWORD }, authorities);
  const [streamClient, connector] = [new StreamClient(client), new DemoConnector(client, sleep)];
  const streams = await loadStreams();
  const all = streams.flatMap(({ deliveries }) => deliveries);
  await connector.start();
  // A run before there is anything to remove, and a backup: the node has had both.
  await done(client, '/admin/scavenge', '/admin/scavenge/progress');
  await done(client, '/admin/backup', '/admin/backup/current');
  for (let round = 0; round < ROUNDS; round++) await together(connector, anew(all), CALLS_MAX);

  await context.request.post(`${url}/ui/session`, {
    data: { user: 'admin', password: PASSWORD },
    headers: { 'x-requested-with': 'skua' },
  });
  const [overview, stream, chunks] = [
    await opened(context, `${url}/ui`),
    await opened(context, `${url}/ui/streams/${LARGEST}`),
    await opened(context, `${url}/ui/chunks`),
  ];
  const ending = new AbortController();
  const coming = traffic(
    connector,
    streamClient,
    all,
    streams.map(({ stream }) => stream),
    ending.signal,
  );
  await sleep(TRAFFIC_MS);
  await picture(overview, 'overview');
  await picture(stream, 'stream');
  ending.abort();
  await coming;

  for (const [name, count] of Object.entries(KEPT)) await streamClient.limit(name, randomUUID(), count);
  for (const name of DELETED) await streamClient.delete(name, 'soft');
  await chunks.getByRole('button', { name: 'Start a dry run' }).click();
  await chunks.getByRole('button', { name: 'Dry run again' }).waitFor();
  await chunks.getByRole('radio', { name: 'Removable' }).click();
  await chunks.locator('canvas').waitFor();
  await picture(chunks, 'chunks');
}

if (process.argv.length > 2) {
  process.stdout.write(
    `npm run pictures: takes the pictures in ${FOLDER} anew, which takes some minutes. It has no options.\n`,
  );
  process.exit(process.argv.slice(2).every((word) => /^(-h|--help)$/.test(word)) ? 0 : 2);
}
const browser = await launched();
if (typeof browser === 'string') throw new Error(browser);
const folder = await mkdtemp(path.join(tmpdir(), 'skua-pictures-'));
const inFolder = (name: string) => path.join(folder, name);
const authority = await issueRoot();
const { cert, key } = await issueNode(authority, 'localhost', { ips: ['127.0.0.1'], dns: ['localhost'] });
await mkdir(inFolder('roots'));
for (const [name, text] of Object.entries({ 'node.crt': cert, 'node.key': key, 'roots/root.crt': authority.cert }))
  await writeFile(inFolder(name), text);
const [port] = await freePorts(1);
const node = new Member({
  name: 'node',
  host: '127.0.0.1',
  port: port!,
  folder: inFolder('data'),
  words: [
    '--certificate-file',
    inFolder('node.crt'),
    '--certificate-private-key-file',
    inFolder('node.key'),
    '--trusted-root-certificates-path',
    inFolder('roots'),
    '--backup-repository',
    inFolder('backups'),
    '--backup-schedule',
    '0 3 * * *',
    '--chunk-size',
    '1MiB',
    '--stream-existence-filter-size',
    '10000',
  ],
  env: {
    SERVER_DEFAULT_ADMIN_PASSWORD: PASSWORD,
    SERVER_DEFAULT_OPS_PASSWORD: PASSWORD,
    SERVER_CONNECTORS__DATA_PROTECTION__TOKEN: randomUUID(),
  },
});
try {
  await mkdir(FOLDER, { recursive: true });
  await node.start();
  const context = await browser.newContext({
    viewport: SIZE,
    deviceScaleFactor: SCALE,
    colorScheme: 'light',
    locale: 'en-US',
    timezoneId: 'UTC',
    reducedMotion: 'reduce',
    ignoreHTTPSErrors: true,
  });
  await takeAll(node.url.replace('http:', 'https:'), inFolder('roots/root.crt'), context);
} finally {
  await browser.close();
  await node.stop();
  await rm(folder, { recursive: true, force: true });
}
