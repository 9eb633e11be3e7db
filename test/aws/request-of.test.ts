import { describe, expect, it } from 'vitest';
import { addressOf, readBody, REQUEST_BODY_BYTES_MAX, requestOf } from '../../infra/aws/functions/request-of.ts';
import { httpEvent } from '../support/lambda/events.ts';

describe('a request of an event', () => {
  it('has method, address, headers, cookies and the place that it comes from', () => {
    const request = requestOf(
      httpEvent('POST', '/streams/orders', {
        query: 'embed=body&x=a%20b',
        headers: { 'x-one': '1' },
        cookies: ['a=1', 'b=2'],
        sourceIp: '203.0.113.7',
      }),
    );
    expect(request.method).toBe('POST');
    expect(request.url).toBe('https://store.example.com/streams/orders?embed=body&x=a%20b');
    expect(request.headers.get('x-one')).toBe('1');
    expect(request.headers.get('cookie')).toBe('a=1; b=2');
    expect(addressOf(request)).toBe('203.0.113.7');
  });

  it('keeps the bytes of a body as they were sent, whether they came as text or as Base64', async () => {
    const bytes = Uint8Array.from({ length: 256 }, (_, i) => i);
    const binary = requestOf(
      httpEvent('POST', '/webhook/x', { body: Buffer.from(bytes).toString('base64'), isBase64Encoded: true }),
    );
    expect(await readBody(binary, 1_000)).toEqual(bytes);
    const text = requestOf(httpEvent('POST', '/webhook/x', { body: '{"name":"Grüße \u2028"}' }));
    expect(Buffer.from(await readBody(text, 1_000)).toString()).toBe('{"name":"Grüße \u2028"}');
  });

  it('refuses a body beyond the limit of the platform, and one beyond that of a handler', async () => {
    const body = Buffer.alloc(REQUEST_BODY_BYTES_MAX + 1).toString('base64');
    expect(() => requestOf(httpEvent('POST', '/streams/a', { body, isBase64Encoded: true }))).toThrowError(
      expect.objectContaining({ code: 'body_too_large', data: { limit: REQUEST_BODY_BYTES_MAX } }),
    );
    const request = requestOf(httpEvent('POST', '/streams/a', { body: 'abc' }));
    await expect(readBody(request, 2)).rejects.toMatchObject({ code: 'body_too_large', data: { limit: 2 } });
    expect(await readBody(request, 3)).toHaveLength(3);
  });

  it.each([
    // As a function's own address gives them.
    ['/streams/%24all', '/streams/%24all'],
    ['/streams/a%2Fb%3Fc', '/streams/a%2Fb%3Fc'],
    // As the gateway does, decoded.
    ['/streams/a b', '/streams/a%20b'],
    ['/streams/größe', '/streams/gr%C3%B6%C3%9Fe'],
    ['/streams/100%', '/streams/100%25'],
    ['/streams/a#b', '/streams/a%23b'],
    ['/streams/$all', '/streams/$all'],
  ])('asks for the path %s as %s', (rawPath, path) => {
    expect(requestOf(httpEvent('GET', rawPath)).url).toBe(`https://store.example.com${path}`);
  });

  it.each(['/x/../streams', '/x/%2e%2E/streams', '/./streams', '/streams/..'])(
    'refuses the path %s, which a URL would make another of',
    (rawPath) => {
      expect(() => requestOf(httpEvent('GET', rawPath))).toThrowError(expect.objectContaining({ code: 'bad_request' }));
    },
  );

  it('gives header values a character a byte, as Node.js does', () => {
    const request = requestOf(httpEvent('GET', '/', { headers: { 'x-name': 'é€' } }));
    expect(Buffer.from(request.headers.get('x-name')!, 'latin1').toString('utf8')).toBe('é€');
  });

  it('refuses a header that can not be one', () => {
    expect(() => requestOf(httpEvent('GET', '/', { headers: { 'x-name': 'a\nb' } }))).toThrowError(
      expect.objectContaining({ code: 'bad_header' }),
    );
  });
});
