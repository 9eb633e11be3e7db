import { describe, expect, test } from 'vitest';
import { addressRanges } from '../../../infra/runtime/config/kinds.ts';
import { proxySide, TrustedProxies } from '../../../local/http/client-address.ts';

const PROXIES = new TrustedProxies(['10.0.0.0/8', '192.0.2.1', '2001:db8:aa::/48']);

const client = (remoteAddress: string | undefined, headers: Record<string, string> = {}, proxies = PROXIES) =>
  proxies.clientOf({ remoteAddress }, new Headers(headers));
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

  test.each([
    '',
    ' ',
    ',',
    'unknown',
    '_hidden',
    '203.0.113.9:x',
    '203.0.113.9:123456',
    '203.0.113.999',
    '010.0.0.1',
    '[203.0.113.9]',
    '[2001:db8::7',
    '[2001:db8::7]x',
    '2001:db8::7:x',
    '203.0.113.9, 10.0.0.2, nonsense',
    '203.0.113.9,',
    'a'.repeat(30_000),
  ])('is the connection where a hop can not be read: %j', (value) => {
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
    ['for=unknown', '10.0.0.1'],
    ['for=_hidden', '10.0.0.1'],
    ['proto=https', '10.0.0.1'],
    ['for=203.0.113.9, proto=https', '10.0.0.1'],
    // An open quotation mark of the client would swallow what the proxy wrote.
    ['for=1.1.1.1;x=", for=203.0.113.9', '10.0.0.1'],
    ['for=1.1.1.1;x=", for="[2001:db8::7]"', '10.0.0.1'],
    ['"'.repeat(30_000), '10.0.0.1'],
    ['', '10.0.0.1'],
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
  expect(addressRanges.parse('10.0.0.0/8, 2001:db8::/32,127.0.0.1, ::1')).toEqual({
    value: ['10.0.0.0/8', '2001:db8::/32', '127.0.0.1', '::1'],
  });
  for (const given of [
    '',
    'localhost',
    '10.0.0.0/33',
    '10.0.0.0/',
    '10.0.0.0/0',
    '::/0',
    '2001:db8::/129',
    '10.0.0/8',
    '10.0.0.1 10.0.0.2',
    'fe80::1%eth0',
    '1.2.3.4/8/8',
    '10.0.0.0/-1',
    '*',
  ])
    expect(addressRanges.parse(given)).toHaveProperty('allowed');
});

describe('whether a request was sent on this machine', () => {
  const HOST = { host: '127.0.0.1:2113' };
  const local = (
    remoteAddress: string | undefined,
    headers: Record<string, string>,
    proxies = new TrustedProxies([]),
  ) => proxies.isLocal({ remoteAddress }, new Headers(headers));

  test.each([
    ['127.0.0.1', '127.0.0.1:2113'],
    ['127.8.0.1', 'localhost'],
    ['::1', '[::1]:2113'],
    ['::ffff:127.0.0.1', 'LOCALHOST:1'],
  ])('%s asking for %s', (address, host) => {
    expect(local(address, { host })).toBe(true);
  });
  test.each<[string, string | undefined, Record<string, string>]>([
    ['another machine', '192.0.2.7', HOST],
    ['nobody any more', undefined, HOST],
    ['another machine that says it is this one', '192.0.2.7', { ...HOST, 'x-forwarded-for': '127.0.0.1' }],
    ['whoever asks for the name that a proxy is reached by', '127.0.0.1', { host: 'events.example.test' }],
    ['whoever asks for another address', '127.0.0.1', { host: '192.0.2.1:2113' }],
    ['whoever names no host', '127.0.0.1', {}],
    ['whoever names none that is one', '127.0.0.1', { host: '127.0.0.1 x' }],
    ['a name that only begins so', '127.0.0.1', { host: '127.0.0.1.example.test' }],
    ['a name that only ends so', '127.0.0.1', { host: 'x.localhost.example' }],
    ...['forwarded', 'via', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-real-ip'].map(
      (name) =>
        [`a proxy that says ${name}`, '127.0.0.1', { ...HOST, [name]: '127.0.0.1' }] satisfies [
          string,
          string,
          Record<string, string>,
        ],
    ),
  ])('not %s', (_, address, headers) => {
    expect(local(address, headers)).toBe(false);
  });

  describe('behind a trusted proxy on it', () => {
    const proxies = new TrustedProxies(['127.0.0.1', '10.0.0.0/8']);
    test.each<[boolean, string, Record<string, string>]>([
      [true, '127.0.0.1', { 'x-forwarded-for': '127.0.0.1', host: 'events.example.test' }],
      [true, '127.0.0.1', { forwarded: 'for="[::1]:80"' }],
      [false, '127.0.0.1', { ...HOST, 'x-forwarded-for': '203.0.113.9' }],
      // What the client claimed stands before what the proxy added.
      [false, '127.0.0.1', { ...HOST, 'x-forwarded-for': '127.0.0.1, 203.0.113.9' }],
      // Another header that the proxy has passed on, and one that can't be read, must open nothing.
      [false, '127.0.0.1', { ...HOST, 'x-forwarded-for': '203.0.113.9', forwarded: 'for=127.0.0.1' }],
      [false, '127.0.0.1', { ...HOST, 'x-forwarded-for': '203.0.113.9', forwarded: '=' }],
      [false, '127.0.0.1', { ...HOST, 'x-forwarded-for': 'unknown' }],
      // A proxy that says nothing may send anybody.
      [false, '127.0.0.1', HOST],
      [false, '10.0.0.1', { ...HOST, 'x-forwarded-for': '127.0.0.1' }],
    ])('%s: %s %j', (expected, address, headers) => {
      expect(local(address, headers, proxies)).toBe(expected);
    });
  });
});
