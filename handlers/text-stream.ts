import { encodeText } from '../core/text.ts';

/** Text is handed on in pieces of about this many characters. */
const PIECE_LENGTH = 65_536;

/** A body from pieces of text, made only as fast as they are read. `close` runs when the reader goes away early. */
export function streamText(pieces: AsyncIterator<string>, close?: () => void): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      let text = '';
      while (text.length < PIECE_LENGTH) {
        const next = await pieces.next();
        if (next.done === true) {
          if (text !== '') controller.enqueue(encodeText(text));
          controller.close();
          return;
        }
        text += next.value;
      }
      controller.enqueue(encodeText(text));
    },
    async cancel() {
      close?.();
      await pieces.return?.();
    },
  }, { highWaterMark: 0 });
}
