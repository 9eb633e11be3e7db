import { describe, expect, it } from 'vitest';
import { REPLY_BODY_BYTES_MAX, REPLY_TEXT_BYTES_MAX, resultOf } from '../../infra/aws/functions/result-of.ts';

const json = { 'content-type': 'application/json; charset=utf-8' };

describe('a result of a reply', () => {
  it('has status, headers and the text', async () => {
    expect(
      await resultOf(
        new Response('{"a":"ü"}', {
          status: 201,
          headers: { ...json, 'x-a': '1', 'content-length': '10', connection: 'close' },
        }),
      ),
    ).toEqual({ statusCode: 201, headers: { ...json, 'x-a': '1' }, body: '{"a":"ü"}', isBase64Encoded: false });
  });

  it('has cookies of its own', async () => {
    const headers = new Headers(json);
    headers.append('set-cookie', 'a=1');
    headers.append('set-cookie', 'b=2');
    expect(await resultOf(new Response('', { headers }))).toMatchObject({ cookies: ['a=1', 'b=2'], headers: json });
  });

  it('has Base64 for what is no text', async () => {
    const bytes = Uint8Array.of(0, 255, 128);
    const expected = { body: Buffer.from(bytes).toString('base64'), isBase64Encoded: true };
    expect(
      await resultOf(new Response(bytes, { headers: { 'content-type': 'application/octet-stream' } })),
    ).toMatchObject(expected);
    // And for what only says that it is.
    expect(await resultOf(new Response(bytes, { headers: { 'content-type': 'text/plain' } }))).toMatchObject(expected);
  });

  it('has Base64 for text that JSON would make too long', async () => {
    const text = '"'.repeat(REPLY_TEXT_BYTES_MAX / 2 + 1);
    expect(await resultOf(new Response(text, { headers: json }))).toMatchObject({
      statusCode: 200,
      isBase64Encoded: true,
    });
  });

  it('is a problem that says what to do where the reply does not fit', async () => {
    for (const [length, type] of [
      [REPLY_BODY_BYTES_MAX + 1, 'image/png'],
      [REPLY_TEXT_BYTES_MAX + 1, 'text/plain'],
    ] as const) {
      const result = await resultOf(new Response('a'.repeat(length), { headers: { 'content-type': type } }));
      expect(result).toMatchObject({
        statusCode: 413,
        headers: { 'content-type': 'application/problem+json; charset=utf-8' },
      });
      expect(JSON.parse(result.body!)).toMatchObject({ code: 'reply_too_large' });
    }
  });

  it('has no body for HEAD, and gives the stream back', async () => {
    let isCancelled = false;
    const body = new ReadableStream({
      cancel() {
        isCancelled = true;
      },
    });
    expect(await resultOf(new Response(body, { headers: json }), 'HEAD')).toMatchObject({
      body: '',
      isBase64Encoded: false,
    });
    expect(isCancelled).toBe(true);
  });
});

describe('server-sent events', () => {
  const events = { 'content-type': 'text/event-stream' };

  function source(pieces: readonly string[]) {
    const state = { cancelled: false, given: 0 };
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        const piece = pieces[state.given++];
        // A subscription never ends by itself.
        if (piece !== undefined) controller.enqueue(Buffer.from(piece));
        else return new Promise(() => {});
      },
      cancel() {
        state.cancelled = true;
      },
    });
    return { state, reply: new Response(body, { headers: events }) };
  }

  it('end where they have caught up, and say when to ask again', async () => {
    const { state, reply } = source([
      'id: 0\ndata: {}\n\n',
      'id: 1\ndata: {}\n\n',
      'event: caught-up\ndata: {}\n\n',
      'id: 2\ndata: {}\n\n',
    ]);
    const result = await resultOf(reply);
    expect(result.body).toBe('retry: 2000\n\nid: 0\ndata: {}\n\nid: 1\ndata: {}\n\nevent: caught-up\ndata: {}\n\n');
    expect(state.cancelled).toBe(true);
  });

  it('end before an event that does not fit, which the next request begins with', async () => {
    const { reply } = source([
      `id: 0\ndata: ${'a'.repeat(3_000_000)}\n\n`,
      `id: 1\ndata: ${'b'.repeat(3_000_000)}\n\n`,
    ]);
    const result = await resultOf(reply);
    expect(result.body!.match(/^id: \d/gm)).toEqual(['id: 0']);
  });

  it('are refused where not even the first one fits: an empty reply would be asked for for ever', async () => {
    const { reply } = source([`id: 0\ndata: ${'a'.repeat(REPLY_BODY_BYTES_MAX)}\n\n`]);
    expect(await resultOf(reply)).toMatchObject({ statusCode: 413 });
  });
});
