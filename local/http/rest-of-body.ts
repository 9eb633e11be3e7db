import { IncomingMessage } from 'node:http';
import type { ServerResponse } from 'node:http';

/**
 * A rest of a body that says that it is no longer is read to its end, in the time that a request has, and the
 * connection goes on: many clients send their login only once they were asked for it.
 */
export const SHORT_BODY_BYTES_MAX = 65_536;
/**
 * Of what else a client sends behind the answer so many bytes are read and dropped, since many clients look for an
 * answer only when they have sent all; most bodies are shorter.
 */
export const REST_BYTES_MAX = 1_048_576;
/**
 * So long the connection stays at most for the client to read the answer; one that were closed while something of it is
 * unread would take the answer away.
 */
export const REST_MS_MAX = 2_000;

/**
 * Bounds what is still read of a request's body once its answer is known; Node.js would read it to its end, however
 * long it is. The answer says that the connection closes, and it is closed when the body has ended, or at the bounds.
 * Over HTTP/2 the stream is reset behind the answer instead.
 */
export function boundRest(message: IncomingMessage, reply: ServerResponse): void {
  if (message.complete || !(message instanceof IncomingMessage) || isShort(message)) return;
  reply.shouldKeepAlive = false;
  let bytes = 0;
  message.on('data', ({ length }: Buffer) => {
    bytes += length;
    if (bytes > REST_BYTES_MAX) message.pause();
  });
  message.resume();
  const { socket } = message;
  // What Node.js calls when the answer has been handed to the system: it would close the connection at once.
  socket.destroySoon = () => {
    delete (socket as Partial<typeof socket>).destroySoon;
    if (message.complete || socket.destroyed) {
      socket.destroySoon();
      return;
    }
    socket.end();
    const late = setTimeout(() => socket.destroy(), REST_MS_MAX).unref();
    message.once('end', () => socket.destroy());
    socket.once('close', () => clearTimeout(late));
  };
}

function isShort({
  headers: { 'content-length': length, 'transfer-encoding': coding, expect },
}: IncomingMessage): boolean {
  return coding === undefined && expect === undefined && Number(length ?? 0) <= SHORT_BODY_BYTES_MAX;
}
