import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SCHEME_NAMES } from '../../core/webhook/format/schemes.ts';
import { bySize } from '../support/run-size.ts';
import { startedNode } from '../local/spawn.ts';
import { secretFor } from '../webhook/signatures/signing.ts';
import { headersOfSources, hostileTexts, hostileValues, parametersOfSources, Sender } from '../support/hostile.ts';

/**
 * A node in a process of its own gets what would keep an engine that backtracks busy for seconds to years, and has to
 * answer. That the time is linear is shown by the linter's rule (test/lint) and the figure `hostile-input`; here
 * nothing is timed: what hangs never ends.
 */

const ADMIN = { authorization: `Basic ${Buffer.from('admin:changeit').toString('base64')}` };
const JSON_TYPE = 'application/json';
/** Of the 32 KiB that all headers of a request may have together. */
const HEADER_LENGTH = 31_500;
/** Of the 8 KiB that a request line may have; most of these characters are escaped. */
const QUERY_LENGTH = 2_400;
const NAME_LENGTH = 1_024;
const VALUE_LENGTH = 32_768;

let folder: string;
let node: Awaited<ReturnType<typeof startedNode>>;
let sender: Sender;

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'skua-hostile-'));
  await writeFile(path.join(folder, 'token'), 'a token for the tests\n');
  node = await startedNode([
    '--db',
    path.join(folder, 'data'),
    '--disable-tls',
    '--connectors-data-protection-token-file',
    path.join(folder, 'token'),
  ]);
  sender = new Sender(node.url, 8);
  for (const name of ['a'.repeat(NAME_LENGTH - 1) + '!', 'ab'.repeat(NAME_LENGTH / 2), 'x'])
    expect(await append(name, '{}')).toBe(201);
});
afterAll(async () => {
  sender?.close();
  await node?.stop();
  await rm(folder, { recursive: true, force: true });
});

function append(stream: string, body: string, headers: Readonly<Record<string, string>> = {}): Promise<number> {
  return sender.status(`/streams/${encodeURIComponent(stream)}`, {
    method: 'POST',
    body,
    headers: { ...ADMIN, 'content-type': JSON_TYPE, 'es-eventtype': 'made', 'es-eventid': randomUUID(), ...headers },
  });
}

/** Every request is answered, and no answer is a failure of ours. */
async function answered(requests: readonly Promise<number>[]): Promise<void> {
  const statuses = await Promise.all(requests);
  expect(statuses.filter((status) => status === 500)).toEqual([]);
  expect(await sender.status('/health/live')).toBe(204);
}

test('the lists of headers and parameters are those of the sources', () => {
  expect(headersOfSources()).toEqual(
    expect.arrayContaining([
      'accept',
      'content-type',
      'authorization',
      'es-eventid',
      'kurrent-expectedversion',
      'x-forwarded-prefix',
      'traceparent',
      'x-hub-signature-256',
      'webhook-id',
    ]),
  );
  expect(parametersOfSources()).toEqual(expect.arrayContaining(['data', 'format', 'from', 'embed', 'limit']));
});

describe('headers', () => {
  test('of a read', async () => {
    await answered(
      headersOfSources().flatMap((name) =>
        hostileTexts(name, HEADER_LENGTH).map((text) =>
          sender.status('/streams/x?embed=body', { headers: { ...ADMIN, accept: JSON_TYPE, [name]: text } }),
        ),
      ),
    );
  });

  test('of a write', async () => {
    const names = bySize(
      ['content-type', 'es-eventid', 'es-eventtype', 'es-expectedversion', 'x-forwarded-prefix'],
      headersOfSources(),
    );
    await answered(
      names.flatMap((name) =>
        hostileTexts(name, HEADER_LENGTH).map((text) => append('headers', '{}', { [name]: text })),
      ),
    );
  });
});

describe('queries', () => {
  const FILTERED = '/streams/%24all/filtered?context=streamid&type=regex';
  test('parameters', async () => {
    await answered(
      parametersOfSources().flatMap((name) =>
        hostileTexts(name, QUERY_LENGTH).flatMap((text) =>
          [
            '/streams/x?',
            `${FILTERED}${name === 'data' ? '' : '&data=a'}&`,
            ...bySize([], ['/admin/scavenge/current?', '/connectors?']),
          ].map((route) =>
            sender.status(`${route}${name}=${encodeURIComponent(text)}`, { headers: { ...ADMIN, accept: JSON_TYPE } }),
          ),
        ),
      ),
    );
  });

  test('expressions', async () => {
    const EXPRESSIONS = [
      '^(a+)+$',
      '^(\\u{61}+)+$',
      '^(\\x{61}+)+$',
      '^(?:a{1,99}){1,99}$',
      '^(a|a)*$',
      '^(a|aa)+$',
      '(.*a){20}$',
      '(.*)*b',
      '(a?){60}a{60}$',
      '^(?:(?:a*)*)*$',
      '(a|b)*a(a|b){12}$',
      '(a|b)*a[ab]{450}$',
      '((((a*)*)*)*)*!',
      '(?:\\pL|\\pN)+$',
      '(?i)(?:K+)+$',
      `${'(a*'.repeat(100)}${')*'.repeat(100)}b`,
      'a{1000}',
      '(?:a{1000}){1000}',
      '((a{10}){10}){10}',
      `(?:${'a'.repeat(900)}){1000}`,
      'a{1000}'.repeat(140),
      '\\pL{1000}'.repeat(100),
      '(?=a+)+$',
      '(a+)\\1$',
    ];
    for (const context of ['streamid', 'eventtype']) {
      await answered(
        EXPRESSIONS.map((text) =>
          sender.status(`/streams/%24all/filtered?context=${context}&type=regex&data=${encodeURIComponent(text)}`, {
            headers: { ...ADMIN, accept: JSON_TYPE },
          }),
        ),
      );
    }
  });
});

describe('JSON', () => {
  test('as the data of an event, which is stored as it came and taken apart by whoever reads it', async () => {
    const values = hostileValues(VALUE_LENGTH);
    await answered(values.flatMap((value, i) => [append(`value-${i}`, value), append(`value-${i}`, `{"a":${value}}`)]));
    await answered(
      values.flatMap((_, i) =>
        bySize(
          ['?embed=tryharder', '/1'],
          ['?embed=body', '?embed=content', '?embed=pretty', '?embed=tryharder', '/0'],
        ).map((rest) =>
          sender.status(`/streams/value-${i}${rest}`, {
            headers: { ...ADMIN, accept: 'application/vnd.eventstore.atom+json' },
          }),
        ),
      ),
    );
  });

  test('as a number of 4 MiB', async () => {
    expect(await append('number', `{"a":0.${'0'.repeat(4_000_000)}1}`)).toBe(201);
    expect(await sender.status('/streams/number?embed=pretty', { headers: { ...ADMIN, accept: JSON_TYPE } })).toBe(200);
  });

  test('in a batch', async () => {
    const batch = (member: string, value: string) =>
      sender.status('/streams/batch', {
        method: 'POST',
        headers: { ...ADMIN, 'content-type': 'application/vnd.eventstore.events+json' },
        body: `[{"eventId":"${randomUUID()}","eventType":"made","data":{},"${member}":${value}}]`,
      });
    await answered(
      hostileValues(VALUE_LENGTH).flatMap((value) =>
        bySize(['data', 'eventId', 'other'], ['data', 'metadata', 'eventId', 'eventType', 'other']).map((member) =>
          batch(member, value),
        ),
      ),
    );
  });

  test('as metadata', async () => {
    const post = (i: number, body: string) =>
      sender.status(`/streams/meta-${i}/metadata`, {
        method: 'POST',
        headers: { ...ADMIN, 'content-type': JSON_TYPE, 'es-eventid': randomUUID() },
        body,
      });
    const values = hostileValues(VALUE_LENGTH);
    await answered(
      values.flatMap((value, i) => [post(i, value), post(i, `{"$maxAge":${value},"$acl":{"$r":${value}}}`)]),
    );
    await answered(
      values.map((_, i) => sender.status(`/streams/meta-${i}`, { headers: { ...ADMIN, accept: JSON_TYPE } })),
    );
  });

  test('as settings, users and calls of webhooks', async () => {
    const send = (method: string, to: string, body: string, headers: Readonly<Record<string, string>> = {}) =>
      sender.status(to, { method, headers: { ...ADMIN, 'content-type': JSON_TYPE, ...headers }, body });
    const script = Buffer.from('function route() { return { stream: "calls" }; }').toString('base64');
    const schemes = bySize(['GitHub', 'Stripe', 'StandardWebhooks'], SCHEME_NAMES);
    for (const scheme of schemes) {
      const settings = {
        instanceTypeName: 'webhook-source',
        routingScript: script,
        'signature:scheme': scheme,
        'signature:secret': secretFor(scheme),
        ...(scheme === 'Generic' && { 'signature:header': 'x-signature' }),
      };
      await send('POST', `/connectors/c-${scheme.toLowerCase()}`, JSON.stringify({ settings }));
      await send('POST', `/connectors/c-${scheme.toLowerCase()}/start`, '');
    }
    const values = hostileValues(VALUE_LENGTH);
    await answered(
      values
        .slice(0, bySize(12, values.length))
        .flatMap((value) => [
          send('POST', '/users', `{"loginName":${value}}`),
          send('POST', '/connectors/odd', `{"settings":${value}}`),
          send('POST', '/admin/scavenge', value),
          send('POST', '/webhook/c-github', value),
        ]),
    );
    const signed = headersOfSources().filter((name) =>
      bySize(/hub|stripe|^webhook/, /signature|hmac|webhook|timestamp|delivery/).test(name),
    );
    await answered(
      schemes.flatMap((scheme) =>
        signed.flatMap((name) =>
          hostileTexts(name, HEADER_LENGTH)
            .slice(0, bySize(2, 22))
            .map((text) => send('POST', `/webhook/c-${scheme.toLowerCase()}`, '{}', { [name]: text })),
        ),
      ),
    );
  });
});
