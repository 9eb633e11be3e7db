import { randomUUID } from 'node:crypto';
import { sign } from '@octokit/webhooks-methods';
import { expect, it } from 'vitest';
import { scheduledEvent } from './events.ts';
import type { LambdaDriver } from './lambda-driver.ts';

const EVENTS = 'application/vnd.eventstore.events+json';
const SECRET = 'a secret of the sender';
const SCRIPT = `function route({ body, headers }) {
  return { stream: 'github-' + body.repository.full_name.replace('/', '-'), schema: headers['x-github-event'] };
}`;
/** Bytes that a JSON parser changes when it writes them again: a signature must be made over what was sent. */
const PAYLOAD =
  '{ "zen" : "Keep it\\u0020logically awesome.",  "repository": {"full_name":"octo/parcels"}, "n": 1.0 }\n';

/** One story over all functions, on an empty bucket: each step finds what the steps before have left. */
export function describeFunctions(driver: () => LambdaDriver): void {
  const json = async (name: string, method: string, path: string, value?: unknown) => {
    const reply = await driver().http(
      name,
      method,
      path,
      value === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(value) },
    );
    return { status: reply.statusCode, body: reply.body === '' ? null : (JSON.parse(reply.body) as any) };
  };
  const append = (stream: string, data: unknown, headers = {}) =>
    driver().http('streams', 'POST', `/streams/${stream}`, {
      headers: { 'content-type': EVENTS, ...headers },
      body: Buffer.from(JSON.stringify([{ eventId: randomUUID(), eventType: 'weighed', data }])),
    });
  const read = async (stream: string) => {
    const reply = await driver().http('streams', 'GET', `/streams/${stream}`, {
      headers: { accept: 'application/x-ndjson' },
    });
    return reply.statusCode === 200
      ? reply.body
          .split('\n')
          .filter((line) => line !== '')
          .map((line) => {
            const event = JSON.parse(line) as any;
            return { ...event, data: JSON.parse(event.data as string) };
          })
      : reply.statusCode;
  };
  const deliver = async (
    payload: string,
    { secret = SECRET, delivery = '72d3162e-cc78-11e3-81ab-4c9367dc0958', base64 = false } = {},
  ) => {
    const headers = {
      'content-type': 'application/json',
      'x-github-event': 'ping',
      'x-github-delivery': delivery,
      'x-hub-signature-256': await sign(secret, payload),
    };
    return (
      await driver().http('webhook', 'POST', '/webhook/github', {
        user: null,
        headers,
        body: base64 ? Buffer.from(payload) : payload,
      })
    ).statusCode;
  };

  it('a tick before anything else finds nothing to do, and begins no log', async () => {
    expect(await driver().value('tick', scheduledEvent())).toMatchObject({ outcome: 'idle', manifest: 0 });
  });

  it('streams are appended to and read', async () => {
    expect(await append('parcels', { grams: 750 })).toMatchObject({
      statusCode: 201,
      headers: { location: 'https://store.example.com/streams/parcels/0' },
    });
    expect(await append('parcels', { grams: 751 }, { 'es-expectedversion': '0' })).toMatchObject({ statusCode: 201 });
    expect(await append('parcels', { grams: 752 }, { 'es-expectedversion': '0' })).toMatchObject({
      statusCode: 400,
      headers: { 'es-currentversion': '1' },
    });
    expect(((await read('parcels')) as any[]).map(({ data }) => data.grams)).toEqual([750, 751]);
    expect(await read('letters')).toBe(404);
  });

  it('users log in with the passwords of the environment', async () => {
    const reply = await driver().http('streams', 'GET', '/streams/%24all', {
      user: ['admin', 'changeit'],
      headers: { accept: 'application/json' },
    });
    expect(reply.statusCode).toBe(401);
    expect((await json('admin', 'GET', '/users/admin')).body).toMatchObject({ data: { loginName: 'admin' } });
    expect((await driver().http('admin', 'GET', '/users', { user: null })).statusCode).toBe(401);
  });

  it('a connector is created and started by one function, and takes calls in another', async () => {
    const settings = {
      instanceTypeName: 'webhook-source',
      routingScript: Buffer.from(SCRIPT).toString('base64'),
      signature: { scheme: 'GitHub', secret: SECRET },
    };
    expect((await json('admin', 'POST', '/connectors/github', { name: 'GitHub', settings })).status).toBe(200);
    expect(await deliver(PAYLOAD)).toBe(404);
    expect((await json('admin', 'POST', '/connectors/github/start')).status).toBe(200);
    expect(await deliver(PAYLOAD)).toBe(202);
    // Accepted means committed: a function that knows nothing yet sees it.
    await driver().restart();
    const events = (await read('github-octo-parcels')) as any[];
    expect(events.map(({ eventType }) => eventType)).toEqual(['ping']);
    expect(events[0].data.repository).toEqual({ full_name: 'octo/parcels' });
  });

  it('a repeated delivery is written once, and one with another signature not at all', async () => {
    expect(await deliver(PAYLOAD, { base64: true })).toBe(202);
    expect(await deliver(PAYLOAD, { secret: 'another', delivery: randomUUID() })).toBe(401);
    expect(await deliver(PAYLOAD.replace('1.0', '1'), { base64: true, delivery: randomUUID() })).toBe(202);
    expect(await read('github-octo-parcels')).toHaveLength(2);
    // The note about the refused one was written before its reply.
    const [refused] = (await read('%24webhook-github-rejections')) as any[];
    expect(refused.data).toMatchObject({ status: 401 });
  });

  it('a connector that waits for the write says 201', async () => {
    const settings = {
      instanceTypeName: 'webhook-source',
      routingScript: Buffer.from(SCRIPT).toString('base64'),
      signature: { scheme: 'GitHub', secret: SECRET },
      waitForWrite: true,
    };
    expect((await json('admin', 'POST', '/connectors/github/stop')).status).toBe(200);
    expect(await deliver(PAYLOAD, { delivery: randomUUID() })).toBe(404);
    expect((await json('admin', 'PUT', '/connectors/github/settings', settings)).status).toBe(200);
    expect((await json('admin', 'POST', '/connectors/github/start')).status).toBe(200);
    expect(await deliver(PAYLOAD, { delivery: randomUUID() })).toBe(201);
  });

  it('a scavenge is asked for, carried out by ticks, and told about', async () => {
    expect((await json('streams', 'POST', '/streams/parcels/metadata', undefined)).status).toBeGreaterThanOrEqual(400);
    const metadata = await driver().http('streams', 'POST', '/streams/parcels/metadata', {
      headers: { 'content-type': EVENTS },
      body: JSON.stringify([{ eventId: randomUUID(), eventType: '$metadata', data: { $maxCount: 1 } }]),
    });
    expect(metadata.statusCode).toBe(201);
    expect((await json('admin', 'GET', '/admin/scavenge/progress')).status).toBe(404);
    const {
      status,
      body: { scavengeId },
    } = await json('admin', 'POST', '/admin/scavenge');
    expect(status).toBe(200);
    expect((await json('admin', 'GET', '/admin/scavenge/current')).body).toMatchObject({ scavengeId });
    expect(await json('admin', 'POST', '/admin/scavenge')).toMatchObject({ status: 409, body: { scavengeId } });
    for (
      let ticks = 0;
      ticks < 5 && (await json('admin', 'GET', '/admin/scavenge/current')).body.scavengeId !== '';
      ticks++
    )
      await driver().value('tick', scheduledEvent());
    expect((await json('admin', 'GET', '/admin/scavenge/last')).body).toMatchObject({
      scavengeId,
      scavengeResult: 'Success',
    });
    await driver().restart();
    expect(((await read('parcels')) as any[]).map(({ data }) => data.grams)).toEqual([751]);
    expect((await append('parcels', { grams: 753 }, { 'es-expectedversion': '1' })).statusCode).toBe(201);
  });

  it('a schedule is configured, and ticks keep it', async () => {
    expect((await json('admin', 'GET', '/auto-scavenge/enabled')).body).toMatchObject({ enabled: true });
    expect((await json('admin', 'POST', '/auto-scavenge/configure', { schedule: '0 3 * * 6' })).status).toBe(200);
    await driver().value('tick', scheduledEvent());
    await driver().restart();
    expect((await json('admin', 'GET', '/auto-scavenge/status')).body).toMatchObject({
      state: 'Waiting',
      schedule: '0 3 * * 6',
    });
  });

  it('a subscription gives what is there, and where to go on', async () => {
    const headers = { accept: 'text/event-stream' };
    const first = await driver().http('streams', 'GET', '/streams/github-octo-parcels', { headers });
    expect(first.body.match(/^(?:id|event|retry):.*/gm)).toEqual([
      'retry: 2000',
      'id: 0',
      'id: 1',
      'id: 2',
      'event: caught-up',
      'id: 2',
    ]);
    const next = await driver().http('streams', 'GET', '/streams/github-octo-parcels', {
      headers: { ...headers, 'last-event-id': '1' },
    });
    expect(next.body.match(/^(?:id|event):.*/gm)).toEqual(['id: 2', 'event: caught-up', 'id: 2']);
  });

  it('what a function does not serve is 404', async () => {
    for (const [name, path] of [
      ['streams', '/users'],
      ['admin', '/streams/a'],
      ['webhook', '/streams/a'],
    ] as const)
      expect((await driver().http(name, 'GET', path)).statusCode).toBe(404);
    expect((await driver().http('streams', 'GET', '/health/live')).statusCode).toBe(204);
  });
}
