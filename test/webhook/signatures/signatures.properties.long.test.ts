import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { checkSignatureSettings, SCHEME_NAMES } from '../../../core/webhook/format/schemes.ts';
import { createSignatureVerifier, signCall } from '../../../core/webhook/signatures/signatures.ts';
import { nodeKeys } from '../../../infra/node-keys.ts';
import { ID, NOW_MS, NOW_S, secretFor, settingsFor } from './signing.ts';

/** Of a signed call every single bit counts. */

const RUNS = { numRuns: 20, seed: 6 };
const bytes = fc.uint8Array({ maxLength: 40 });
const NO_LIMIT_MS = 1e15;

function flip(data: Uint8Array, bit: number): Uint8Array {
  const changed = data.slice();
  changed[bit >> 3]! ^= 1 << (bit & 7);
  return changed;
}

const latin = (text: string) => Buffer.from(text, 'latin1');

function sign(scheme: string, body: Uint8Array, secret = secretFor(scheme)): Map<string, string> {
  return new Map(
    signCall(nodeKeys, settingsFor(scheme), secret, { body, timestampS: NOW_S, id: ID }).map(([name, value]) => [
      name.toLowerCase(),
      value,
    ]),
  );
}

function accepts(
  scheme: string,
  headers: ReadonlyMap<string, string>,
  body: Uint8Array,
  secret = secretFor(scheme),
): boolean {
  const settings = { ...settingsFor(scheme), timestampToleranceMs: NO_LIMIT_MS };
  if (checkSignatureSettings(settings, [secret]).length > 0) return false;
  return createSignatureVerifier(nodeKeys, settings, [secret]).verify(headers, body, NOW_MS).kind === 'valid';
}

/** The header that holds the signature, the text in front of it, and its encoding. */
function signatureIn(
  scheme: string,
  headers: ReadonlyMap<string, string>,
): { name: string; before: string; text: string; encoding: 'hex' | 'base64' } {
  const name = [...headers.keys()].at(-1)!;
  const [, before, text] = /^(sha256=|v0=|t=\d+,v1=|v1,|mac |)(.*)$/.exec(headers.get(name)!)! as unknown as [
    string,
    string,
    string,
  ];
  return { name, before, text, encoding: /^[0-9a-f]+$/.test(text) ? 'hex' : 'base64' };
}

describe.each(SCHEME_NAMES)('%s', (scheme) => {
  test('accepts its own signature, and no body with another bit or byte', () => {
    fc.assert(
      fc.property(bytes, (body) => {
        const headers = sign(scheme, body);
        expect(accepts(scheme, headers, body)).toBe(true);
        for (let bit = 0; bit < body.length * 8; bit++) expect(accepts(scheme, headers, flip(body, bit))).toBe(false);
        expect(accepts(scheme, headers, new Uint8Array([...body, 0]))).toBe(false);
        if (body.length > 0) expect(accepts(scheme, headers, body.subarray(1))).toBe(false);
      }),
      RUNS,
    );
  });

  test('accepts no other bit of the decoded signature', () => {
    fc.assert(
      fc.property(bytes, (body) => {
        const headers = sign(scheme, body);
        const { name, before, text, encoding } = signatureIn(scheme, headers);
        const mac = Buffer.from(text, encoding);
        expect(mac.toString(encoding)).toBe(text);
        for (let bit = 0; bit < mac.length * 8; bit++)
          expect(
            accepts(scheme, new Map(headers).set(name, before + Buffer.from(flip(mac, bit)).toString(encoding)), body),
          ).toBe(false);
      }),
      RUNS,
    );
  });

  test('accepts no other bit in any text of its headers', () => {
    const body = latin('{"a":1}');
    const headers = sign(scheme, body);
    for (const [name, value] of headers) {
      // An id that is not signed may be any.
      if (name === 'x-github-delivery' || name === 'x-shopify-webhook-id') continue;
      for (let bit = 0; bit < value.length * 8; bit++)
        expect(
          accepts(scheme, new Map(headers).set(name, Buffer.from(flip(latin(value), bit)).toString('latin1')), body),
        ).toBe(false);
    }
  });

  test('accepts no other bit of the secret', () => {
    const body = latin('{"a":1}');
    const secret = secretFor(scheme);
    const headers = sign(scheme, body);
    for (let bit = 0; bit < secret.length * 8; bit++)
      expect(accepts(scheme, headers, body, Buffer.from(flip(latin(secret), bit)).toString('latin1'))).toBe(false);
  });

  test('accepts a signature in its canonical text only', () => {
    const body = latin('{"b":[2]}');
    const headers = sign(scheme, body);
    const { name, before, text, encoding } = signatureIn(scheme, headers);
    const others = [
      ` ${text}`,
      `${text} `,
      `${text}\t`,
      `${text.slice(0, 10)} ${text.slice(10)}`,
      `"${text}"`,
      `${text}\u0000`,
      `${text}00`,
      ...(encoding === 'hex'
        ? [text.toUpperCase(), `0x${text}`, Buffer.from(text, 'hex').toString('base64')]
        : [text.replace(/=+$/, ''), `${text}=`, Buffer.from(text, 'base64').toString('hex'), ...strayBits(text)]),
    ];
    for (const other of others) {
      if (other === text) continue;
      // Where items stand side by side, white space ends one: the rest is another item, and the whole signature still
      // stands there.
      const isSeparated = scheme === 'StandardWebhooks' && (other === `${text} ` || other === ` ${text}`);
      if (!isSeparated)
        expect(accepts(scheme, new Map(headers).set(name, before + other), body), JSON.stringify(other)).toBe(false);
    }
  });

  test('survives any header', () => {
    fc.assert(
      fc.property(
        fc.dictionary(
          fc.constantFrom(...sign(scheme, new Uint8Array(0)).keys()),
          fc.string({ unit: 'binary', maxLength: 60 }),
        ),
        bytes,
        (headers, body) => {
          expect(accepts(scheme, new Map(Object.entries(headers)), body)).toBe(false);
        },
      ),
      { ...RUNS, numRuns: 200 },
    );
  });
});

/** Texts that a lenient decoder takes for the same bytes. */
function strayBits(text: string): string[] {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
  const padding = /=*$/.exec(text)![0];
  const bare = text.slice(0, text.length - padding.length);
  const mac = Buffer.from(text, 'base64');
  const same = [...alphabet]
    .map((last) => bare.slice(0, -1) + last + padding)
    .filter((other) => other !== text && Buffer.from(other, 'base64').equals(mac));
  expect(padding === '' || same.length > 0).toBe(true);
  return [...same, text.replaceAll('+', '-').replaceAll('/', '_')];
}
