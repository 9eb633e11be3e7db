import { describe, expect, test } from 'vitest';
import { addressRanges } from '../../../local/config/kinds.ts';
import { proxySide, TrustedProxies } from '../../../local/http/client-address.ts';

const PROXIES = new TrustedProxies(['10.0.0.0/8', '192.0.2.1', '2001:db8:aa::/48']);

const client = (remoteAddress: string | undefined, headers: Record<string, string> = {}, proxies = PROXIES) => proxies.clientOf({ remoteAddress }, new Headers(headers));
const list = (value: string, remoteAddress = '10.0.0.1') => client(remoteAddress, { 'x-forwarded-for': value });
const forwarded = (value: string, remoteAddress = '10.0.0.1') => client(remoteAddress, { forwarded: value });

describe('where a request comes from', () => {
  test('is its connection, whatever it says, where nobody is trusted', () => {
    const headers = { 'x-forwarded-for': '203.0.113.9', forwarded: 'for=203.0.113.9' };
    expect(client('10.0.0.1', headers, new TrustedProxies([]))).toBe('10.0.0.1');
    expect(client('192.0.2.2', headers)).toBe('192.0.2.2');
    expect(client('::ffff:192.0.2.2', headers)).toBe('192.0.2.2');
    expect(client(undefined, headers)).toBeNull();
  });

  test.each([
    ['203.0.113.9', '203.0.113.9'],
    // What the client wrote itself stands before what the proxy wrote.
    ['1.1.1.1, 203.0.113.9', '203.0.113.9'],
    ['nonsense,,, 203.0.113.9', '203.0.113.9'],
    ['203.0.113.9, 10.1.2.3', '203.0.113.9'],
    ['203.0.113.9,192.0.2.1 ,\t10.1.2.3', '203.0.113.9'],
    ['10.1.2.3, 10.3.4.5', '10.1.2.3'],
    ['203.0.113.9:4711', '203.0.113.9'],
    ['[2001:DB8:0:0::7]:4711', '2001:db8::7'],
    ['2001:0db8::7', '2001:db8::7'],
    ['203.0.113.9, 2001:db8:aa:1::5', '203.0.113.9'],
    ['::ffff:203.0.113.9', '203.0.113.9'],
    ['203.0.113.9, ::ffff:10.0.0.9', '203.0.113.9'],
    ['fe80::1%eth0', 'fe80::1'],
  ])('behind proxies is the last hop that is none of them: %s', (value, address) => {
    expect(list(value)).toBe(address);
  });

  test.each(['', ' ', ',', 'unknown', '_hidden', '203.0.113.9:x', '203.0.113.9:123456', '203.0.113.999', '010.0.0.1', '[203.0.113.9]', '[2001:db8::7', '[2001:db8::7]x', '2001:db8::7:x', '203.0.113.9, 10.0.0.2, nonsense', '203.0.113.9,', 'a'.repeat(30_000)])('is the connection where a hop can not be read: %j', (value) => {
    expect(list(value)).toBe('10.0.0.1');
  });

  test('is the connection where the proxy says nothing', () => {
    expect(client('10.0.0.1')).toBe('10.0.0.1');
    expect(client('2001:db8:aa::1')).toBe('2001:db8:aa::1');
  });

  test.each([
    ['for=203.0.113.9', '203.0.113.9'],
    ['For="[2001:db8::7]:4711";proto=https;by=10.0.0.1', '2001:db8::7'],
    ['for=1.1.1.1, for=203.0.113.9;host=x', '203.0.113.9'],
    ['for=203.0.113.9, for=10.2.2.2', '203.0.113.9'],
    ['for=unknown', '10.0.0.1'], ['for=_hidden', '10.0.0.1'], ['proto=https', '10.0.0.1'], ['for=203.0.113.9, proto=https', '10.0.0.1'],
    // An open quotation mark of the client would swallow what the proxy wrote.
    ['for=1.1.1.1;x=", for=203.0.113.9', '10.0.0.1'],
    ['for=1.1.1.1;x=", for="[2001:db8::7]"', '10.0.0.1'],
    ['"'.repeat(30_000), '10.0.0.1'], ['', '10.0.0.1'],
  ])('is read from Forwarded: %s', (value, address) => {
    expect(forwarded(value)).toBe(address);
  });

  test('is the connection where the two headers name different clients: one of them the proxy may only have passed on', () => {
    const both = (one: string, other: string) => client('10.0.0.1', { 'x-forwarded-for': one, forwarded: other });
    expect(both('203.0.113.9', 'for=203.0.113.9')).toBe('203.0.113.9');
    expect(both('203.0.113.9', 'for=198.51.100.1')).toBe('10.0.0.1');
    expect(both('203.0.113.9', 'nonsense')).toBe('10.0.0.1');
  });
});

test('a connection of a trusted proxy is known by its address alone', () => {
  const side = proxySide(PROXIES, () => ({ remoteAddress: '10.0.0.1' }));
  const other = proxySide(PROXIES, () => ({ remoteAddress: '203.0.113.9' }));
  const request = new Request('http://x/', { headers: { 'x-forwarded-for': '203.0.113.9' } });
  expect(side.isTrustedProxy!(request)).toBe(true);
  expect(side.addressOf(request)).toBe('203.0.113.9');
  expect(other.isTrustedProxy!(request)).toBe(false);
  expect(proxySide(new TrustedProxies([]), () => ({ remoteAddress: '10.0.0.1' })).isTrustedProxy).toBeUndefined();
});

test('the option takes addresses and ranges, and never everybody', () => {
  expect(addressRanges.parse('10.0.0.0/8, 2001:db8::/32,127.0.0.1, ::1')).toEqual({ value: ['10.0.0.0/8', '2001:db8::/32', '127.0.0.1', '::1'] });
  for (const given of ['', 'localhost', '10.0.0.0/33', '10.0.0.0/', '10.0.0.0/0', '::/0', '2001:db8::/129', '10.0.0/8', '10.0.0.1 10.0.0.2', 'fe80::1%eth0', '1.2.3.4/8/8', '10.0.0.0/-1', '*']) expect(addressRanges.parse(given)).toHaveProperty('allowed');
});
