/**
 * A body from pieces of bytes, each asked for only when the reader has taken the one before. A reader that goes away ends them.
 * Their memory may be used again, and what the server has not sent yet is still needed, so they are copied.
 */
export function streamBytes(first: IteratorResult<Uint8Array, void>, pieces: AsyncGenerator<Uint8Array, void, undefined>): ReadableStream<Uint8Array> {
  let next: IteratorResult<Uint8Array, void> | null = first;
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const piece = next ?? await pieces.next();
      next = null;
      if (piece.done === true) controller.close();
      else controller.enqueue(piece.value.slice());
    },
    async cancel() {
      await pieces.return();
    },
  }, { highWaterMark: 0 });
}
