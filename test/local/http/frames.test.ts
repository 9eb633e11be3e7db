import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { FRAME_HEAD_BYTES_MAX, frameHead, frameHeaders, FrameReader, FrameWriter } from '../../../local/http/frames.ts';

type Seen = readonly [number, readonly string[], string];

function reader(seen: Seen[] = [], bodyBytesMax = 100) {
  return new FrameReader(bodyBytesMax, (id, head, body) => seen.push([id, head, body.toString('latin1')]));
}

/** Length, number, length of the head, and what stands behind. */
function frame(length: number, id: number, head: number, rest: string): Buffer {
  const fixed = Buffer.alloc(12);
  fixed.writeUInt32LE(length, 0);
  fixed.writeUInt32LE(id, 4);
  fixed.writeUInt32LE(head, 8);
  return Buffer.concat([fixed, Buffer.from(rest, 'latin1')]);
}

test('frames arrive as they were written, together in one write, however they are cut', async () => {
  const connection = new PassThrough({ highWaterMark: 1_000_000 });
  let writes = 0;
  const writer = new FrameWriter(connection, () => { writes++; });
  const frames: Seen[] = [[0, ['POST', '/streams/a', 'es-eventtype', 'grö\xdfe'], 'body'], [7, ['201', ''], ''], [4_294_967_295, ['GET', '/', 'a', '', 'b', 'x\ty'], '\0\xff'.repeat(50)]];
  for (const [id, [first, second, ...headers], body] of frames) writer.add(id, frameHead(first!, second!, headers), body === '' ? null : Buffer.from(body, 'latin1'));
  expect([writer.isEmpty, connection.readableLength]).toEqual([false, 0]);
  await new Promise((resolve) => { setImmediate(resolve); });
  expect([writer.isEmpty, writes]).toEqual([true, 1]);
  const bytes = connection.read() as Buffer;
  for (const size of [1, 2, 3, 5, 11, 12, 13, 40, 97, bytes.length]) {
    const seen: Seen[] = [];
    const read = reader(seen);
    for (let at = 0; at < bytes.length; at += size) read.take(Buffer.from(bytes.subarray(at, at + size)));
    expect(seen).toEqual(frames);
  }
  expect(frameHeaders(frames[2]![1])).toEqual({ a: '', b: 'x\ty' });
});

test('lengths that can\'t be are refused before anything is kept for them, heads when they are there', () => {
  for (const [length, head, rest] of [[0, 0, ''], [7, 0, ''], [4_294_967_295, 0, ''], [8 + FRAME_HEAD_BYTES_MAX + 101, 0, '']] as const) {
    expect(() => reader().take(frame(length, 1, head, rest))).toThrow(`${length} bytes`);
    expect(() => reader().take(frame(length, 1, head, rest).subarray(0, 4))).toThrow(`${length} bytes`);
  }
  for (const head of [4, 4_294_967_295, FRAME_HEAD_BYTES_MAX + 1]) expect(() => reader().take(frame(11, 1, head, 'abc'))).toThrow(`${head} bytes`);
  for (const text of ['a\0b', 'a\rb', 'a\x7fb']) expect(() => reader().take(frame(8 + text.length, 1, text.length, text))).toThrow('no text');
  for (const head of [['GET'], ['GET', '/', 'name'], ['GET', '/', 'Name', 'x'], ['GET', '/', '', 'x'], ['GET', '/', 'a b', 'x']]) expect(() => frameHeaders(head)).toThrow('the head of a frame');
  expect(Object.getPrototypeOf(frameHeaders(['GET', '/', '__proto__', 'x']))).toBe(null);
});

test('what would be another line is not written', () => {
  for (const text of ['a\nb', 'a\u010ab', 'a\rb', 'a\0']) expect(() => frameHead('200', 'OK', ['name', text])).toThrow('no header can');
  expect(() => new FrameWriter(new PassThrough()).add(1, 'x'.repeat(FRAME_HEAD_BYTES_MAX + 1), null)).toThrow('characters');
});
