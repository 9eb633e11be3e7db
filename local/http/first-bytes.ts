import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';

/** How a connection begins whose client knows that the server speaks HTTP/2 (RFC 9113 section 3.4). */
const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');

interface Takers {
  /** How long a client may take to show what it speaks. */
  readonly patienceMs: number;
  http2(socket: Socket): void;
  /** Behind what comes in the turn of the process that is under way, or just was. */
  soon(socket: Socket, run: () => void): void;
  /** Nothing came that tells. */
  late(socket: Socket): void;
}

type Listener = (this: Server, socket: Socket) => void;

/**
 * Gives the connections that speak HTTP/2 to another one than the server of HTTP/1.1: over TLS those that have agreed
 * on it, else those that begin with its preface. All others the server gets as if nothing had been looked at: requests
 * cost nothing more, a connection one look.
 */
export function divide(server: Server, isPlain: boolean, takers: Takers): void {
  const event = isPlain ? 'connection' : 'secureConnection';
  // The first listener is that of the server's own making.
  const [http1] = server.listeners(event) as [Listener];
  server.removeListener(event, http1);
  server.prependListener(
    event,
    isPlain
      ? (socket: Socket) => look(socket, takers, () => http1.call(server, socket))
      : (socket: Socket) => {
          if ((socket as TLSSocket).alpnProtocol === 'h2') takers.http2(socket);
          else http1.call(server, socket);
        },
  );
}

/** Waits for as many bytes as tell the two apart. */
function look(socket: Socket, { patienceMs, http2, late, soon }: Takers, http1: () => void): void {
  let begun: Buffer | null = null;
  let isHttp2: boolean | null = null;
  let isLeft = false;
  const timer = setTimeout(() => {
    leave();
    late(socket);
  }, patienceMs).unref();
  const leave = () => {
    isLeft = true;
    clearTimeout(timer);
    socket.removeListener('data', data);
    socket.removeListener('end', end);
    socket.removeListener('close', leave);
  };
  const giveTo = (taker: () => void) => {
    if (isLeft) return;
    socket.pause();
    leave();
    socket.unshift(begun!);
    taker();
  };
  const data = (piece: Buffer) => {
    begun = begun === null ? piece : Buffer.concat([begun, piece]);
    if (isHttp2 !== null) return;
    isHttp2 = isPreface(begun);
    // A client that has sent its requests and gone at once is found out in the next turn, before as many streams are
    // made as it asked for.
    if (isHttp2 === true) soon(socket, () => soon(socket, () => giveTo(() => http2(socket))));
    else if (isHttp2 === false) {
      giveTo(http1);
      socket.resume();
    }
  };
  const end = () => {
    leave();
    socket.end();
  };
  socket.on('data', data);
  socket.on('end', end);
  socket.on('close', leave);
}

/** Null where more is needed to tell. */
function isPreface(bytes: Buffer): boolean | null {
  const length = Math.min(bytes.length, PREFACE.length);
  if (bytes.compare(PREFACE, 0, length, 0, length) !== 0) return false;
  return length === PREFACE.length ? true : null;
}
