import { createHmac } from 'node:crypto';
import { sign as signAsGitHub, verify as verifyAsGitHub } from '@octokit/webhooks-methods';
import { Webhook } from 'standardwebhooks';
import Stripe from 'stripe';
import { describe, expect, test } from 'vitest';
import type { SignatureSettings } from '../../../core/webhook/api.ts';
import { GENERIC, SCHEME_NAMES } from '../../../core/webhook/format/schemes.ts';
import {
  createSignatureVerifier,
  SIGNATURE_HEADER_LENGTH_MAX,
  SIGNATURES_MAX,
  signCall,
} from '../../../core/webhook/signatures/signatures.ts';
import type { SignatureOutcome } from '../../../core/webhook/signatures/signatures.ts';
import { nodeKeys } from '../../../infra/node-keys.ts';
import { bodyOf, ID, NOW_MS, NOW_S, secretFor, settingsFor } from './signing.ts';

/** The senders' own libraries sign, or their published algorithms written down here. */

const BODY = '{"action":"opened","amount":12.50,"note":"Grüße, ✓"}';

function check(
  scheme: string,
  secrets: readonly string[],
  headers: Record<string, string>,
  { body = BODY, nowMs = NOW_MS, ...more }: Partial<SignatureSettings> & { body?: string; nowMs?: number } = {},
): SignatureOutcome {
  const verifier = createSignatureVerifier(nodeKeys, { ...settingsFor(scheme), ...more }, secrets);
  return verifier.verify(
    new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
    bodyOf(body),
    nowMs,
  );
}

function hmac(secret: string | Uint8Array, text: string, encoding: 'hex' | 'base64', hash = 'sha256'): string {
  return createHmac(hash, secret).update(text).digest(encoding);
}

const valid = (secretIndex = 0) => ({ kind: 'valid', secretIndex });
const refused = (reason: string, header: string) => ({ kind: 'refused', reason, header });
const stripe = (secret: string, timestamp = NOW_S) =>
  Stripe.webhooks.generateTestHeaderString({ payload: BODY, secret, timestamp });
const standard = (secret: string, timestamp = NOW_S, id = ID) => ({
  'webhook-id': id,
  'webhook-timestamp': String(timestamp),
  'webhook-signature': new Webhook(secret).sign(id, new Date(timestamp * 1000), BODY),
});
const slack = (secret: string, timestamp: string | number = NOW_S) => ({
  'X-Slack-Request-Timestamp': String(timestamp),
  'X-Slack-Signature': `v0=${hmac(secret, `v0:${timestamp}:${BODY}`, 'hex')}`,
});

describe('what real senders sign is accepted', () => {
  test('GitHub, by its library', async () => {
    expect(
      check('GitHub', ['it is a secret'], { 'X-Hub-Signature-256': await signAsGitHub('it is a secret', BODY) }),
    ).toEqual(valid());
  });
  test('Stripe, by its library', () => {
    expect(
      check('Stripe', ['whsec_used_as_it_stands'], { 'Stripe-Signature': stripe('whsec_used_as_it_stands') }),
    ).toEqual(valid());
  });
  test('Standard Webhooks, by its library', () => {
    const secret = secretFor('StandardWebhooks');
    expect(check('StandardWebhooks', [secret], standard(secret))).toEqual(valid());
  });
  test('Shopify, by its published algorithm', () => {
    expect(check('Shopify', ['hush'], { 'X-Shopify-Hmac-Sha256': hmac('hush', BODY, 'base64') })).toEqual(valid());
  });
  test('Standard Webhooks, under the names of Svix: all of one family count, and those of the scheme first', () => {
    const secret = secretFor('StandardWebhooks');
    const svix = (headers: Record<string, string>) =>
      Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.replace('webhook-', 'svix-'), value]));
    const called = svix(standard(secret));
    expect(check('StandardWebhooks', [secret], called)).toEqual(valid());
    expect(check('StandardWebhooks', [secret], { ...called, ...standard(secret, NOW_S, 'another') })).toEqual(valid());
    expect(
      check('StandardWebhooks', [secret], { ...called, 'webhook-id': 'another', 'webhook-timestamp': '1' }),
    ).toEqual(valid());
    expect(check('StandardWebhooks', [secret], { ...called, 'webhook-signature': 'v1,x' })).toEqual(
      refused('timestamp-missing', 'webhook-timestamp'),
    );
    expect(check('StandardWebhooks', [secret], svix(standard(secret, NOW_S - 301)))).toEqual(
      refused('timestamp-outside-tolerance', 'svix-timestamp'),
    );
    const { 'svix-id': id, ...rest } = called;
    expect(check('StandardWebhooks', [secret], { ...rest, 'webhook-id': id! })).toEqual(
      refused('id-missing', 'svix-id'),
    );
    expect(check('StandardWebhooks', [secret], {})).toEqual(refused('signature-missing', 'webhook-signature'));
    expect(check('GitHub', ['s'], called)).toEqual(refused('signature-missing', 'x-hub-signature-256'));
  });
  test('Slack, by its published algorithm', () => {
    expect(check('Slack', ['hush'], slack('hush'))).toEqual(valid());
  });
  test("Slack's published example", () => {
    const body =
      'token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c';
    const headers = {
      'X-Slack-Request-Timestamp': '1531420618',
      'X-Slack-Signature': 'v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503',
    };
    expect(check('Slack', ['8f742231b10e8888abcd99yyyzzz85a5'], headers, { body, nowMs: 1_531_420_618_000 })).toEqual(
      valid(),
    );
  });
  test("GitHub's published example", () => {
    const headers = {
      'X-Hub-Signature-256': 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17',
    };
    expect(check('GitHub', ["It's a Secret to Everybody"], headers, { body: 'Hello, World!' })).toEqual(valid());
  });
  test.each([
    ['ProviderA', { 'X-ProviderA-Signature-256': `sha256=${hmac('hush', BODY, 'hex')}` }],
    ['ProviderB', { 'X-ProviderB-Hmac-Sha256': hmac('hush', BODY, 'base64') }],
    [
      'ProviderC',
      {
        'X-ProviderC-Request-Timestamp': String(NOW_S),
        'X-ProviderC-Signature': `v0=${hmac('hush', `v0:${NOW_S}:${BODY}`, 'hex')}`,
      },
    ],
    ['ProviderD', { 'ProviderD-Signature': `t=${NOW_S},v1=${hmac('hush', `${NOW_S}.${BODY}`, 'hex')}` }],
  ])('%s, as the contract writes it', (scheme, headers) => {
    expect(check(scheme, ['hush'], headers)).toEqual(valid());
    expect(check(scheme.toUpperCase(), ['hush'], headers)).toEqual(valid());
    expect(check(scheme, ['hushed'], headers)).toMatchObject({ reason: 'signature-wrong' });
  });
  const generic: [string | null, 'hex' | 'base64', string][] = (['hex', 'base64'] as const).flatMap((encoding) =>
    ['sha256', 'sha1', 'sha512'].flatMap(
      (hash) =>
        [
          [null, encoding, hash],
          ['Sig-1 ', encoding, hash],
        ] as [string | null, 'hex' | 'base64', string][],
    ),
  );
  test.each(generic)('Generic with prefix %j, %s, %s', (prefix, encoding, hash) => {
    const signature = `${prefix ?? ''}${hmac('hush', BODY, encoding, hash)}`;
    expect(check('generic', ['hush'], { 'X-Sig': signature }, { header: 'x-sig', prefix, encoding, hash })).toEqual(
      valid(),
    );
    expect(
      check('Generic', ['hush'], { 'X-Sig': ` ${signature}` }, { header: 'x-sig', prefix, encoding, hash }),
    ).toMatchObject({ kind: 'refused' });
  });
  test('Generic is hex and SHA-256 unless told otherwise', () => {
    expect(
      check(
        GENERIC,
        ['hush'],
        { 'X-Sig': hmac('hush', BODY, 'hex') },
        { header: 'X-Sig', prefix: null, encoding: null, hash: null },
      ),
    ).toEqual(valid());
  });
});

describe("what is signed here is accepted by the senders' libraries", () => {
  const signed = (scheme: string, secret: string) =>
    Object.fromEntries(
      signCall(nodeKeys, settingsFor(scheme), secret, { body: bodyOf(BODY), timestampS: NOW_S, id: ID }),
    );
  test('GitHub', async () => {
    const headers = signed('GitHub', 'hush');
    expect(headers['X-GitHub-Delivery']).toBe(ID);
    expect(await verifyAsGitHub('hush', BODY, headers['X-Hub-Signature-256']!)).toBe(true);
  });
  test('Stripe', () => {
    expect(
      Stripe.webhooks.signature!.verifyHeader(BODY, signed('Stripe', 'whsec_x')['Stripe-Signature']!, 'whsec_x', 0),
    ).toBe(true);
  });
  test('Standard Webhooks', () => {
    const secret = secretFor('StandardWebhooks');
    expect(signed('StandardWebhooks', secret)).toEqual(standard(secret));
  });
  test.each(SCHEME_NAMES)('and %s here', (scheme) => {
    expect(check(scheme, [secretFor(scheme)], signed(scheme, secretFor(scheme)))).toEqual(valid());
  });
  test('an id that can not be signed is refused', () => {
    for (const id of [null, '', 'a.b', 'a b', 'ä', 'x'.repeat(257)]) {
      expect(() =>
        signCall(nodeKeys, settingsFor('StandardWebhooks'), secretFor('StandardWebhooks'), {
          body: bodyOf(BODY),
          timestampS: NOW_S,
          id,
        }),
      ).toThrow(/without a full stop/);
    }
  });
});

describe('several secrets and several signatures', () => {
  const secrets = Array.from({ length: 10 }, (_, at) => `secret ${at}`);
  test.each([0, 1, 5, 9])('secret %i is told', (at) => {
    expect(check('Shopify', secrets, { 'X-Shopify-Hmac-Sha256': hmac(secrets[at]!, BODY, 'base64') })).toEqual(
      valid(at),
    );
  });
  test('a removed secret no longer counts', () => {
    expect(
      check('Shopify', secrets.slice(1), { 'X-Shopify-Hmac-Sha256': hmac(secrets[0]!, BODY, 'base64') }),
    ).toMatchObject({ reason: 'signature-wrong' });
  });
  test('any of several signatures counts, wherever it stands', () => {
    const [old, fresh] = [hmac('old', `${NOW_S}.${BODY}`, 'hex'), hmac('fresh', `${NOW_S}.${BODY}`, 'hex')];
    for (const header of [`t=${NOW_S},v1=${old},v1=${fresh}`, `v1=${fresh},t=${NOW_S},v1=${old},v0=${old}`]) {
      expect(check('Stripe', ['fresh'], { 'Stripe-Signature': header })).toEqual(valid());
      expect(check('Stripe', ['other', 'old'], { 'Stripe-Signature': header })).toEqual(valid(1));
      expect(check('Stripe', ['other'], { 'Stripe-Signature': header })).toMatchObject({ reason: 'signature-wrong' });
    }
    const [a, b] = [`whsec_${btoa('a'.repeat(24))}`, `whsec_${btoa('b'.repeat(24))}`];
    const headers = {
      ...standard(a),
      'webhook-signature': `v1a,${btoa('x')} ${standard(a)['webhook-signature']} ${standard(b)['webhook-signature']}`,
    };
    expect(check('StandardWebhooks', [b], headers)).toEqual(valid());
    expect(check('StandardWebhooks', [b, a], headers)).toEqual(valid(0));
  });
  test('signatures of another version do not count', () => {
    const signature = hmac('hush', `${NOW_S}.${BODY}`, 'hex');
    expect(check('Stripe', ['hush'], { 'Stripe-Signature': `t=${NOW_S},v0=${signature}` })).toEqual(
      refused('signature-malformed', 'stripe-signature'),
    );
    const { 'webhook-signature': v1, ...rest } = standard(secretFor('StandardWebhooks'));
    expect(
      check('StandardWebhooks', [secretFor('StandardWebhooks')], {
        ...rest,
        'webhook-signature': v1.replace('v1,', 'v1a,'),
      }),
    ).toEqual(refused('signature-malformed', 'webhook-signature'));
  });
  test('senders of one signature send one', () => {
    const one = `sha256=${hmac('hush', BODY, 'hex')}`;
    for (const header of [`${one},${one}`, `sha256=0,${one}`, `${one} `])
      expect(check('GitHub', ['hush'], { 'X-Hub-Signature-256': header })).toMatchObject({ kind: 'refused' });
  });
});

describe('limits', () => {
  const good = hmac('hush', `${NOW_S}.${BODY}`, 'hex');
  test('of signatures in a header', () => {
    const header = (others: number) => `t=${NOW_S},${'v1=0,'.repeat(others)}v1=${good}`;
    expect(check('Stripe', ['hush'], { 'Stripe-Signature': header(SIGNATURES_MAX - 1) })).toEqual(valid());
    expect(check('Stripe', ['hush'], { 'Stripe-Signature': header(SIGNATURES_MAX) })).toEqual(
      refused('signature-malformed', 'stripe-signature'),
    );
  });
  test('of the length of a header', () => {
    const header = (length: number) => `t=${NOW_S},v1=${good},v0=`.padEnd(length, '0');
    expect(check('Stripe', ['hush'], { 'Stripe-Signature': header(SIGNATURE_HEADER_LENGTH_MAX) })).toEqual(valid());
    expect(check('Stripe', ['hush'], { 'Stripe-Signature': header(SIGNATURE_HEADER_LENGTH_MAX + 1) })).toEqual(
      refused('signature-malformed', 'stripe-signature'),
    );
  });
  test('of the id, which holds no full stop', () => {
    const secret = secretFor('StandardWebhooks');
    expect(check('StandardWebhooks', [secret], standard(secret, NOW_S, 'x'.repeat(256)))).toEqual(valid());
    for (const id of ['x'.repeat(257), 'a.b', 'a b'])
      expect(check('StandardWebhooks', [secret], standard(secret, NOW_S, id))).toEqual(
        refused('id-malformed', 'webhook-id'),
      );
  });
  test('an id that ends in a time does not stand for another delivery', () => {
    // What was signed for the delivery `a` is the same text as this one's.
    const key = Buffer.from('k'.repeat(24));
    const signature = `v1,${hmac(key, `a.1.${NOW_S}.5`, 'base64')}`;
    const headers = { 'webhook-id': 'a.1', 'webhook-timestamp': String(NOW_S), 'webhook-signature': signature };
    expect(check('StandardWebhooks', [`whsec_${key.toString('base64')}`], headers, { body: '5' })).toEqual(
      refused('id-malformed', 'webhook-id'),
    );
  });
});

describe('missing and malformed', () => {
  const standardSecret = secretFor('StandardWebhooks');
  test.each(SCHEME_NAMES)('%s without any header', (scheme) => {
    expect(check(scheme, [secretFor(scheme)], {})).toMatchObject({ kind: 'refused', reason: 'signature-missing' });
  });
  test.each<[string, string, Record<string, string>, SignatureOutcome['kind'] | string, string]>([
    ['empty', 'GitHub', { 'X-Hub-Signature-256': '' }, 'signature-missing', 'x-hub-signature-256'],
    [
      'without its prefix',
      'GitHub',
      { 'X-Hub-Signature-256': hmac('hush', BODY, 'hex') },
      'signature-malformed',
      'x-hub-signature-256',
    ],
    [
      'with another prefix',
      'GitHub',
      { 'X-Hub-Signature-256': `sha1=${hmac('hush', BODY, 'hex')}` },
      'signature-malformed',
      'x-hub-signature-256',
    ],
    [
      'nothing behind the prefix',
      'GitHub',
      { 'X-Hub-Signature-256': 'sha256=' },
      'signature-malformed',
      'x-hub-signature-256',
    ],
    [
      'cut off',
      'GitHub',
      { 'X-Hub-Signature-256': `sha256=${hmac('hush', BODY, 'hex').slice(0, 62)}` },
      'signature-wrong',
      'x-hub-signature-256',
    ],
    [
      'no time in its header',
      'Slack',
      { 'X-Slack-Signature': slack('hush')['X-Slack-Signature'] },
      'timestamp-missing',
      'x-slack-request-timestamp',
    ],
    [
      'no time among the pairs',
      'Stripe',
      { 'Stripe-Signature': stripe('hush').replace(/t=\d+,/, '') },
      'timestamp-missing',
      'stripe-signature',
    ],
    [
      'two times',
      'Stripe',
      { 'Stripe-Signature': `${stripe('hush')},t=${NOW_S}` },
      'timestamp-malformed',
      'stripe-signature',
    ],
    [
      'two lines joined',
      'Stripe',
      { 'Stripe-Signature': `${stripe('hush')},${stripe('hush')}` },
      'timestamp-malformed',
      'stripe-signature',
    ],
    [
      'white space between pairs',
      'Stripe',
      { 'Stripe-Signature': stripe('hush').replace(',', ', ') },
      'signature-malformed',
      'stripe-signature',
    ],
  ])('%s: %s', (_, scheme, headers, reason, header) => {
    expect(check(scheme, ['hush'], headers)).toEqual(refused(reason, header));
  });
  test('Standard Webhooks without id or time', () => {
    const {
      'webhook-id': id,
      'webhook-timestamp': timestamp,
      'webhook-signature': signature,
    } = standard(standardSecret);
    expect(
      check('StandardWebhooks', [standardSecret], { 'webhook-timestamp': timestamp, 'webhook-signature': signature }),
    ).toEqual(refused('id-missing', 'webhook-id'));
    expect(check('StandardWebhooks', [standardSecret], { 'webhook-id': id, 'webhook-signature': signature })).toEqual(
      refused('timestamp-missing', 'webhook-timestamp'),
    );
  });
  test.each([
    '',
    ' ',
    '-5',
    '+5',
    '1e9',
    '0x10',
    '1700000000.0',
    ' 1700000000',
    '1700000000 ',
    '01700000000',
    '1700000000000000',
    '１７００００００００',
    'now',
  ])('a time written %j', (text) => {
    expect(check('Slack', ['hush'], slack('hush', text), { timestampToleranceMs: 1e15 })).toMatchObject({
      kind: 'refused',
      header: 'x-slack-request-timestamp',
    });
  });
  test('what stands in a refusal is not from the call', () => {
    const text = JSON.stringify(
      check('Slack', ['hush'], { ...slack('hush', 'time-xyz'), 'X-Slack-Signature': 'v0=signature-xyz' }),
    );
    expect(text).not.toMatch(/xyz|hush/);
  });
});

describe('tolerance, on the clock of the node', () => {
  const at = (offsetMs: number, timestampToleranceMs: number) =>
    ['Slack', 'Stripe', 'StandardWebhooks'].map((scheme) => {
      const secret = secretFor(scheme);
      const headers =
        scheme === 'Slack'
          ? slack(secret)
          : scheme === 'Stripe'
            ? { 'Stripe-Signature': stripe(secret) }
            : standard(secret);
      const outcome = check(scheme, [secret], headers, { nowMs: NOW_MS + offsetMs, timestampToleranceMs });
      return outcome.kind === 'valid' ? 'valid' : outcome.reason;
    });
  test.each([
    [300_000, 300_000, 'valid'],
    [300_001, 300_000, 'timestamp-outside-tolerance'],
    [-300_000, 300_000, 'valid'],
    [-300_001, 300_000, 'timestamp-outside-tolerance'],
    [0, 0, 'valid'],
    [1, 0, 'timestamp-outside-tolerance'],
    [-1, 0, 'timestamp-outside-tolerance'],
  ])('%i ms away with %i ms: %s', (offset, tolerance, expected) => {
    expect(at(offset, tolerance)).toEqual([expected, expected, expected]);
  });
  test('is of no account where no time is signed', () => {
    expect(
      check(
        'Shopify',
        ['hush'],
        { 'X-Shopify-Hmac-Sha256': hmac('hush', BODY, 'base64') },
        { nowMs: 0, timestampToleranceMs: 0 },
      ),
    ).toEqual(valid());
  });
});
