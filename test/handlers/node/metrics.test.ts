import { gunzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { FakeNode } from '../../support/fake-node.ts';
import { harness } from '../harness.ts';

describe('/metrics', () => {
  test('hands on what the scraper accepts, and what the node says', async () => {
    const node = new FakeNode();
    const { get } = harness({ node });
    const reply = await get('/metrics', 'application/openmetrics-text;version=1.0.0,text/plain;q=0.5');
    expect(reply.status).toBe(200);
    expect(reply.text).toBe(node.metricsText);
    expect(reply.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(reply.headers.get('cache-control')).toBe('max-age=0, no-cache, must-revalidate');
    await get('/metrics');
    expect(node.calls).toEqual(['metrics application/openmetrics-text;version=1.0.0,text/plain;q=0.5', 'metrics ']);
  });

  test('is compressed for scrapers that ask for it', async () => {
    const node = new FakeNode();
    const { raw } = harness({ node });
    const reply = await raw('GET', '/metrics', { 'accept-encoding': 'gzip' });
    expect(reply.headers.get('content-encoding')).toBe('gzip');
    expect(gunzipSync(await reply.bytes()).toString()).toBe(node.metricsText);
  });
});
