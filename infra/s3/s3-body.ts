import { throwIfAborted, wrongSize } from '../../core/ports/object-store.ts';

/** All of a reply's body, which has to have as many bytes as the reply announced. */
export async function readBody(body: unknown, sizeBytes: number | undefined, signal: AbortSignal | undefined): Promise<Uint8Array> {
  const stream = body as AsyncIterable<Uint8Array> & { destroy?(error?: Error): void };
  const end = () => stream.destroy?.(new Error('aborted'));
  signal?.addEventListener('abort', end);
  try {
    if (sizeBytes === undefined) return await gatherUnknown(stream);
    const bytes = new Uint8Array(sizeBytes);
    let filled = 0;
    for await (const piece of stream) {
      if (filled + piece.length > sizeBytes) throw cutShort();
      bytes.set(piece, filled);
      filled += piece.length;
    }
    if (filled < sizeBytes) throw cutShort();
    return bytes;
  } finally {
    signal?.removeEventListener('abort', end);
  }
}

async function gatherUnknown(stream: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  for await (const piece of stream) pieces.push(piece);
  return new Uint8Array(await new Blob(pieces as Uint8Array<ArrayBuffer>[]).arrayBuffer());
}

/** As a connection that is reset in the middle, which it mostly was. */
function cutShort(): Error {
  return Object.assign(new Error('the reply ended before all of the object had come'), { code: 'ECONNRESET' });
}

/** All of the content, for an object that is written at once. */
export async function gatherContent(content: AsyncIterable<Uint8Array>, sizeBytes: number, key: string, signal: AbortSignal | undefined): Promise<Uint8Array> {
  const bytes = new Uint8Array(sizeBytes);
  let filled = 0;
  for await (const piece of content) {
    throwIfAborted(signal, key);
    if (filled + piece.length > sizeBytes) throw wrongSize(key, sizeBytes, filled + piece.length);
    bytes.set(piece, filled);
    filled += piece.length;
  }
  if (filled < sizeBytes) throw wrongSize(key, sizeBytes, filled);
  return bytes;
}
