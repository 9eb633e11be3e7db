import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { SCHEME_NAMES } from '../../../core/webhook/format/schemes.ts';
import { runProgram } from '../../../local/cli/run-command.ts';
import { COMMANDS } from '../../../local/commands/all-commands.ts';
import { secretFor, settingsFor } from '../../webhook/signatures/signing.ts';
import { startedNode, startedProcess } from '../spawn.ts';
import { FakeIo } from '../support.ts';

/** Webhooks of a whole node: real files, signals and restarts. */

type Node = Awaited<ReturnType<typeof startedNode>>;

/** Streams by kind, types by a header. */
const SCRIPT =
  "function route({ body, headers }) { return { stream: 'in-' + body.kind, schema: headers['x-event'] }; }";
const SECRET = 'it is a secret to everybody';
const SIGNED = { signature: { scheme: 'GitHub', secret: SECRET } };
const WAITING = { waitForWrite: true };
const LOGIN = { authorization: `Basic ${btoa('ops:changeit')}`, 'content-type': 'application/json' };

let folder: string;
let nodes: Node[];
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'skua-webhooks-'));
  nodes = [];
});
afterEach(async () => {
  await Promise.all(nodes.map((node) => node.stop()));
  rmSync(folder, { recursive: true, force: true });
});

function start(...words: string[]): Promise<Node> {
  return startBy(startedNode, words);
}

async function startBy(starter: typeof startedNode, words: readonly string[]): Promise<Node> {
  const node = await starter(['--disable-tls', '--db', path.join(folder, 'data'), '--chunk-size', '1MiB', ...words]);
  nodes.push(node);
  return node;
}

function file(name: string, content: string): string {
  const to = path.join(folder, name);
  writeFileSync(to, content);
  return to;
}

/** The option that gives a node its token. */
function token(text = 'a token'): string[] {
  return ['--connectors-data-protection-token-file', file('token', `${text}\n`)];
}

/** A command for connectors, as an operator. */
async function manage(
  node: Node,
  method: string,
  rest: string,
  body?: object,
): Promise<{ status: number; answer: Record<string, unknown> }> {
  const reply = await fetch(`${node.url}/connectors${rest}`, {
    method,
    headers: LOGIN,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return { status: reply.status, answer: (await reply.json()) as Record<string, unknown> };
}

function create(node: Node, id: string, settings: object) {
  return manage(node, 'POST', `/${id}`, {
    settings: { instanceTypeName: 'webhook-source', routingScript: btoa(SCRIPT), streams: ['in-*'], ...settings },
  });
}

/** Creates a connector and starts it. */
async function run(node: Node, id: string, settings: object): Promise<void> {
  expect(await create(node, id, settings)).toEqual({ status: 200, answer: {} });
  expect(await manage(node, 'POST', `/${id}/start`)).toEqual({ status: 200, answer: {} });
}

async function stateOf(node: Node, id: string): Promise<unknown> {
  const { answer } = await manage(node, 'GET', `?connectorId=${id}`);
  return (answer['items'] as { state: unknown }[])[0]?.state;
}

/** `skua webhook send` of a body, and its exit code and report. */
async function send(
  node: Node,
  id: string,
  body: object,
  ...words: string[]
): Promise<{ code: number; status: number }> {
  const io = new FakeIo();
  const code = await runProgram(
    { commands: COMMANDS, version: '1' },
    ['webhook', 'send', `${node.url}/webhook/${id}`, file('body.json', JSON.stringify(body)), '--json', ...words],
    io,
  );
  expect(io.err).toBe('');
  return { code, status: (JSON.parse(io.out) as { status: number }).status };
}

/** The words that sign as GitHub does. */
function github(deliveryId: string, secret = SECRET): string[] {
  return ['--scheme', 'GitHub', '--secret-file', file('secret', secret), '--id', deliveryId];
}

interface Line {
  readonly eventType: string;
  readonly data: string;
  readonly metaData: string | null;
}

async function read(node: Node, stream: string): Promise<Line[]> {
  const reply = await fetch(`${node.url}/streams/${encodeURIComponent(stream)}`, {
    headers: { authorization: `Basic ${btoa('admin:changeit')}`, accept: 'application/x-ndjson' },
  });
  const text = await reply.text();
  return reply.ok
    ? text
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as Line)
    : [];
}

/** The part of a report that counts calls, by outcome. */
async function callsOf(node: Node, id: string): Promise<Record<string, number>> {
  const text = await (await fetch(`${node.url}/metrics`, { headers: LOGIN })).text();
  const found = text.matchAll(/^eventstore_webhook_calls_total\{([^}]*)\} (\d+)/gm);
  const counts: Record<string, number> = {};
  for (const [, labels, count] of found) {
    if (labels!.includes(`connector="${id}"`)) counts[/outcome="([^"]*)"/.exec(labels!)![1]!] = Number(count);
  }
  return counts;
}

test('calls of every scheme are written; one with a wrong secret is not', async () => {
  const node = await start(...token());
  const body = { kind: 'x', note: 'Grüße' };
  for (const scheme of SCHEME_NAMES) {
    const id = `of-${scheme}`;
    const { header, prefix, encoding, hash } = settingsFor(scheme);
    const parts = Object.entries({ header, prefix, encoding, hash }).filter(([, value]) => value !== null) as [
      string,
      string,
    ][];
    const words = ['--scheme', scheme, ...parts.flatMap(([name, value]) => [`--signature-${name}`, value])];
    await run(node, id, { ...WAITING, signature: { scheme, secret: secretFor(scheme), ...Object.fromEntries(parts) } });
    const secret = (content: string) => ['--secret-file', file('secret', content)];
    expect(
      await send(
        node,
        id,
        { ...body, kind: scheme },
        ...words,
        ...secret(secretFor(scheme)),
        '--header',
        'X-Event=arrived',
      ),
      scheme,
    ).toEqual({ code: 0, status: 201 });
    const wrong = scheme === 'StandardWebhooks' ? `whsec_${btoa('another key')}` : 'another secret';
    expect(await send(node, id, { ...body, kind: scheme }, ...words, ...secret(wrong)), scheme).toEqual({
      code: 4,
      status: 401,
    });
    expect(await send(node, id, { ...body, kind: scheme }), scheme).toEqual({ code: 4, status: 401 });
    const events = await read(node, `in-${scheme}`);
    expect(events).toHaveLength(1);
    expect(events[0]).toMatchObject({
      eventType: 'arrived',
      data: readFileSync(path.join(folder, 'body.json'), 'utf8'),
    });
    expect(Object.keys(JSON.parse(events[0]!.metaData!) as object)).toEqual(['content-type', 'user-agent']);
    expect(await callsOf(node, id)).toEqual({ written: 1, 'refused-signature': 2 });
  }
  const rejections = await read(node, '$webhook-of-GitHub-rejections');
  expect(rejections.map(({ data }) => (JSON.parse(data) as { status: number }).status)).toEqual([401, 401]);
});

test('after a restart the connector runs again and knows what it has written', async () => {
  const words = token();
  const first = await start(...words);
  await run(first, 'orders', { ...SIGNED, ...WAITING });
  await create(first, 'stopped', {});
  expect(await send(first, 'orders', { kind: 'parcel', n: 1 }, ...github('one'))).toMatchObject({ status: 201 });
  expect(await send(first, 'orders', { kind: 'parcel', n: 1 }, ...github('one'))).toMatchObject({ status: 201 });
  expect((await first.stop()).code).toBe(0);

  const second = await start(...words);
  expect(await stateOf(second, 'orders')).toBe('CONNECTOR_STATE_RUNNING');
  expect(await stateOf(second, 'stopped')).toBe('CONNECTOR_STATE_STOPPED');
  expect(await send(second, 'orders', { kind: 'parcel', n: 1 }, ...github('one'))).toMatchObject({ status: 201 });
  expect(await send(second, 'orders', { kind: 'parcel', n: 2 }, ...github('two'))).toMatchObject({ status: 201 });
  expect((await read(second, 'in-parcel')).map(({ eventType, data }) => [eventType, data])).toEqual([
    ['WebhookReceived', '{"kind":"parcel","n":1}'],
    ['WebhookReceived', '{"kind":"parcel","n":2}'],
  ]);
  expect(await callsOf(second, 'orders')).toEqual({ duplicate: 1, written: 1 });
});

describe('SIGTERM while calls are under way', () => {
  test.each([
    [true, 201],
    [false, 202],
  ])('waitForWrite %s: nothing that was answered %i is lost, or written twice', async (waitForWrite, status) => {
    const first = await startBy(startedProcess, ['--log-level', 'error']);
    await run(first, 'orders', { waitForWrite, deduplication: { header: 'x-delivery' } });
    const accepted: string[] = [];
    let sent = 0;
    // Each sends one call after another until the node is gone.
    const senders = Array.from({ length: 16 }, async (_, sender) => {
      for (let n = 0; ; n++) {
        const delivery = `${sender}-${n}`;
        const reply = await post(first, delivery).catch(() => null);
        if (reply === null) return;
        if (reply === status) accepted.push(delivery);
        else expect([404, 503]).toContain(reply);
        if (++sent === 200) first.process.child.kill('SIGTERM');
      }
    });
    await Promise.all(senders);
    expect((await first.process.ended).code).toBe(0);
    expect(accepted.length).toBeGreaterThan(100);

    const second = await start();
    const written = (await read(second, 'in-parcel')).map(
      ({ data }) => (JSON.parse(data) as { delivery: string }).delivery,
    );
    expect(new Set(written).size).toBe(written.length);
    expect(accepted.filter((delivery) => !written.includes(delivery))).toEqual([]);
    // And a sender that tries again finds them written.
    const again = await Promise.all(accepted.slice(-20).map((delivery) => post(second, delivery)));
    expect(new Set(again)).toEqual(new Set([status]));
    await manage(second, 'POST', '/orders/stop');
    expect(await read(second, 'in-parcel')).toHaveLength(written.length);
  });

  async function post(node: Node, delivery: string): Promise<number> {
    const reply = await fetch(`${node.url}/webhook/orders`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-delivery': delivery },
      body: JSON.stringify({ kind: 'parcel', delivery }),
    });
    await reply.text();
    return reply.status;
  }
});

describe('the data-protection token', () => {
  test('may hold commas, and is listed among the previous ones all the same', async () => {
    const first = await start('--connectors-data-protection-token', 'long, random; and kept, too');
    await run(first, 'orders', { ...SIGNED, ...WAITING });
    await first.stop();
    const second = await start(
      ...token('second'),
      '--connectors-data-protection-previous-tokens',
      String.raw`zeroth, long\, random; and kept\, too`,
    );
    expect(await send(second, 'orders', { kind: 'parcel' }, ...github('one'))).toMatchObject({ status: 201 });
    await second.stop();
    await expect(start('--connectors-data-protection-token', 'a blank ')).rejects.toThrow('error token_invalid: ');
  });

  test('a file that can not be read ends the start', async () => {
    await expect(start('--connectors-data-protection-token-file', path.join(folder, 'absent'))).rejects.toThrow(
      'error token_unreadable: ',
    );
  });
});
