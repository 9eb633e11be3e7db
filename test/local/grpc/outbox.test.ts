import type { ServerHttp2Stream } from 'node:http2';
import { Writable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { Outbox } from '../../../local/grpc/outbox.ts';
import { SpareBlocks } from '../../../local/grpc/spare-blocks.ts';
import { Flow } from '../../../local/http/flow.ts';

const BYTES = 40_000;

/** A stream that says that it has written something only when the test does. */
class HeldStream extends Writable {
  readonly taken: Uint8Array[] = [];
  written: ((error?: Error | null) => void)[] = [];

  constructor() {
    super({ highWaterMark: 1_000_000, emitClose: false });
    this.on('error', () => {});
  }

  override _write(piece: Uint8Array, _: string, done: (error?: Error | null) => void): void {
    this.taken.push(piece);
    this.written.push(done);
  }
}

/** What stands behind the callbacks that the stream has queued has happened. */
const settled = () =>
  new Promise((resolve) => {
    setImmediate(resolve);
  });

function outbox() {
  const stream = new HeldStream();
  const spares = new SpareBlocks();
  return { stream, spares, box: new Outbox(stream as unknown as ServerHttp2Stream, new Flow(), spares) };
}

describe('what a call sends', () => {
  test('lies in memory that is used again only when the stream has written all of it', async () => {
    const { stream, box } = outbox();
    const first = box.memory(100_000);
    box.send(first, 1);
    const second = box.memory(100_000);
    expect(second.buffer).not.toBe(first.buffer);
    // A block goes in pieces: one that was written is not all of it.
    stream.written.shift()!();
    await settled();
    expect(box.memory(100_000).buffer).not.toBe(first.buffer);
    stream.written.shift()!();
    await settled();
    expect(box.memory(100_000).buffer).toBe(first.buffer);
    expect(Buffer.concat(stream.taken)).toHaveLength(100_000);
  });

  test('keeps memory that was not sent, or sent in another, for nobody', async () => {
    const { stream, spares, box } = outbox();
    box.memory(BYTES);
    const block = box.memory(BYTES);
    box.send(new Uint8Array(block), 1);
    stream.written.shift()!();
    await settled();
    expect([spares.heldBytes, box.memory(BYTES).buffer === block.buffer]).toEqual([0, false]);
  });

  test.each<[string, (stream: HeldStream, box: Outbox) => void]>([
    ['destroyed', (stream) => stream.destroy()],
    ['reset, which only its state says', (stream) => Object.assign(stream, { closed: true })],
    ['failing', (stream) => (stream.written = stream.written.map((done) => () => done(new Error('reset'))))],
    ['told to be over', (_, box) => box.close()],
  ])('leaves memory alone of a stream that is %s before it has written', async (_, end) => {
    const { stream, spares, box } = outbox();
    Object.defineProperty(stream, 'closed', { value: false, writable: true });
    const block = box.memory(BYTES);
    box.send(block, 1);
    end(stream, box);
    for (const done of stream.written) done();
    await settled();
    expect([spares.heldBytes, box.memory(BYTES).buffer === block.buffer]).toEqual([0, false]);
  });

  test('gives memory up with its end', async () => {
    const { stream, spares, box } = outbox();
    box.send(box.memory(BYTES), 1);
    stream.written.shift()!();
    await settled();
    expect(spares.heldBytes).toBeGreaterThan(BYTES);
    box.close();
    expect(spares.heldBytes).toBe(0);
  });
});
