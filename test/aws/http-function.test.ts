import { describe, expect, it } from 'vitest';
import { SkuaError } from '../../core/base/errors.ts';
import { FunctionLog, httpHandler } from '../../infra/aws/functions/http-function.ts';
import type { OpenHttp } from '../../infra/aws/functions/http-function.ts';
import { ConfigError } from '../../infra/runtime/config/option.ts';
import { basic, httpEvent } from '../support/lambda/events.ts';

const context = (remainingMs = 29_000) => ({ awsRequestId: 'call-1', getRemainingTimeInMillis: () => remainingMs });
const answers = (fetch: OpenHttp['fetch']): OpenHttp => ({ fetch, settled: async () => {} });
const quiet = () => new FunctionLog('off');

describe('the handler of a function', () => {
  it('opens what it needs with the first call, and keeps it', async () => {
    let opened = 0;
    const handler = httpHandler(
      {
        serves: () => true,
        open: async () => {
          opened++;
          return answers(() => new Response('yes'));
        },
      },
      quiet(),
    );
    for (let call = 0; call < 3; call++)
      expect(await handler(httpEvent('GET', '/'), context())).toMatchObject({ statusCode: 200, body: 'yes' });
    expect(opened).toBe(1);
  });

  it('answers the call during which it could not open, and tries again with the next one', async () => {
    let attempts = 0;
    const lines: string[] = [];
    const handler = httpHandler(
      {
        serves: () => true,
        open: async () => {
          if (attempts++ === 0) throw new SkuaError('storage_denied', 'The bucket secret-name refuses.', {});
          return answers(() => new Response('yes'));
        },
      },
      new FunctionLog('info', (line) => {
        lines.push(line);
      }),
    );
    const failed = await handler(httpEvent('GET', '/'), context());
    expect(failed).toMatchObject({ statusCode: 503, headers: { 'retry-after': '60' } });
    expect(JSON.parse(failed.body!)).toMatchObject({ code: 'storage_denied' });
    // Names of buckets are no caller's business; whoever reads the log needs them.
    expect(failed.body).not.toContain('secret-name');
    expect(JSON.parse(lines[0]!)).toMatchObject({ requestId: 'call-1', code: 'storage_denied' });
    expect(lines[0]).toContain('secret-name');
    expect(await handler(httpEvent('GET', '/'), context())).toMatchObject({ statusCode: 200 });
  });

  it('has no bodies in its failures where senders of webhooks are told nothing', async () => {
    const handler = httpHandler(
      {
        serves: (path) => path === '/webhook/a',
        hasNoErrorBodies: true,
        open: async () => {
          throw new SkuaError('storage_denied', 'The bucket refuses.', {});
        },
      },
      quiet(),
    );
    const failed = await handler(httpEvent('POST', '/webhook/a'), context());
    expect(failed).toMatchObject({ statusCode: 503, headers: { 'retry-after': '60' }, body: '' });
    expect(failed.headers).not.toHaveProperty('content-type');
    expect(await handler(httpEvent('GET', '/other'), context())).toMatchObject({ statusCode: 404, body: '' });
  });

  it('says in its log alone what is wrong with its settings', async () => {
    const lines: string[] = [];
    const handler = httpHandler(
      {
        serves: () => true,
        open: async () => {
          throw new ConfigError(['SERVER_STORAGE is missing.']);
        },
      },
      new FunctionLog('info', (line) => {
        lines.push(line);
      }),
    );
    const failed = await handler(httpEvent('GET', '/'), context());
    expect(failed.statusCode).toBe(500);
    expect(failed.body).not.toContain('SERVER_STORAGE');
    expect(lines[0]).toContain('SERVER_STORAGE is missing.');
  });

  it('opens nothing for a path that it does not serve, or a call that it refuses', async () => {
    const handler = httpHandler(
      {
        serves: (path) => path === '/mine',
        open: async () => {
          throw new Error('opened');
        },
      },
      quiet(),
    );
    expect(await handler(httpEvent('GET', '/other'), context())).toMatchObject({ statusCode: 404 });
    expect(
      await handler(
        httpEvent('POST', '/mine', { body: Buffer.alloc(6_000_001).toString('base64'), isBase64Encoded: true }),
        context(),
      ),
    ).toMatchObject({ statusCode: 413 });
    expect(await handler(httpEvent('GET', '/mine', { headers: { a: 'b\nc' } }), context())).toMatchObject({
      statusCode: 400,
    });
  });

  it('gives its result only when nothing is under way any more', async () => {
    const order: string[] = [];
    const { promise, resolve } = Promise.withResolvers<void>();
    const handler = httpHandler(
      {
        serves: () => true,
        open: async () => ({
          fetch: () => {
            setImmediate(() => {
              order.push('note written');
              resolve();
            });
            return new Response('yes');
          },
          settled: () => promise,
        }),
      },
      quiet(),
    );
    await handler(httpEvent('GET', '/'), context());
    order.push('replied');
    expect(order).toEqual(['note written', 'replied']);
  });

  it('answers before the platform ends it', async () => {
    const handler = httpHandler(
      { serves: () => true, open: async () => answers(() => new Promise(() => {})) },
      quiet(),
    );
    // Less is left than what is kept for giving up.
    const late = await handler(httpEvent('GET', '/'), context(200));
    expect(late.statusCode).toBe(503);
    expect(JSON.parse(late.body!)).toMatchObject({ code: 'aborted' });
  });

  it('passes credentials on as they were sent', async () => {
    const handler = httpHandler(
      {
        serves: () => true,
        open: async () => answers((request) => new Response(request.headers.get('authorization'))),
      },
      quiet(),
    );
    expect(
      (await handler(httpEvent('GET', '/', { headers: { authorization: basic('ops', 'p:w') } }), context())).body,
    ).toBe(basic('ops', 'p:w'));
  });
});

describe('a wait', () => {
  const seconds = async (headers: Record<string, string>, remainingMs: number) => {
    const handler = httpHandler(
      {
        serves: () => true,
        open: async () => answers((request) => new Response(request.headers.get('es-longpoll') ?? 'none')),
      },
      quiet(),
    );
    return (await handler(httpEvent('GET', '/streams/a', { headers }), context(remainingMs))).body;
  };

  it.each([
    ['60', 29_000, '20'],
    ['5', 29_000, '5'],
    ['15', 10_500, '7'],
    ['15', 2_000, 'none'],
    ['soon', 29_000, 'soon'],
  ])('of %s seconds with %i ms left is one of %s', async (asked, leftMs, expected) => {
    expect(await seconds({ 'es-longpoll': asked }, leftMs)).toBe(expected);
  });
});
