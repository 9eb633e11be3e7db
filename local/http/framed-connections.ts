import { ServerResponse } from 'node:http';
import type { IncomingMessage, Server, ServerOptions } from 'node:http';
import type { Socket } from 'node:net';
import { FRAMES_PATH, FRAMES_PROTOCOL } from './frames.ts';
import { FramedConnection } from './framed-connection.ts';
import type { FramedParts } from './framed-connection.ts';
import { replyUnderWay, sendReply } from './reply.ts';
import { LocalRequest } from './request.ts';

/** What handlers answer to a member that asks for such a connection. */
const WELCOME_STATUS = 204;
const SWITCHING = `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${FRAMES_PROTOCOL}\r\n\r\n`;

/**
 * Before Node.js 24.9 a server that takes one protocol gets no requests any more that offer another (`h2c`, as some clients always do), so that there it takes
 * none: the request for a connection is answered as any other, and each request that is passed on has one of its own.
 */
const TAKES_ONE_PROTOCOL = isNodeSince(24, 9);

/** Other protocols that clients offer are passed over, as RFC 9110 section 7.8 lets a server do: their requests are answered as they came. */
export const upgradeOptions: ServerOptions = {
  shouldUpgradeCallback: ({ method, url, headers }) => method === 'GET' && url === FRAMES_PATH && headers.upgrade === FRAMES_PROTOCOL,
};

/** The connections of a server over which members pass on requests. Who may have one is asked as a request for it, which handlers answer. */
export class FramedConnections {
  readonly #parts: FramedParts;
  readonly #open = new Map<Socket, FramedConnection | null>();
  #isEnding = false;

  constructor(server: Server, parts: FramedParts, onUse: (socket: Socket) => void) {
    this.#parts = parts;
    if (!TAKES_ONE_PROTOCOL) return;
    server.on('upgrade', (message: IncomingMessage, socket: Socket, head: Buffer) => {
      onUse(socket);
      parts.guard.run(socket, () => this.#welcome(message, socket, head));
    });
  }

  /** No more requests are taken; each connection is closed when those under way are answered. */
  end(): void {
    this.#isEnding = true;
    for (const connection of this.#open.values()) connection?.end();
  }

  cutOff(): void {
    for (const socket of this.#open.keys()) socket.destroy();
  }

  async #welcome(message: IncomingMessage, socket: Socket, head: Buffer): Promise<void> {
    const { fetch, log } = this.#parts;
    // It has ended already (pipeline.ts).
    if (socket.destroyed) return;
    const underWay = replyUnderWay(socket);
    if (underWay !== null) {
      // It was asked for behind a request that has no answer yet, which no member does.
      underWay.once('close', () => socket.destroySoon());
      // Nobody else reads on, and who goes away waits for no answer.
      socket.on('end', () => socket.destroy());
      socket.resume();
      return;
    }
    this.#open.set(socket, null);
    socket.on('close', () => this.#open.delete(socket));
    const reply = new ServerResponse(message);
    reply.shouldKeepAlive = false;
    reply.assignSocket(socket);
    const request = new LocalRequest(message, reply, this.#parts);
    try {
      const response = await fetch(request as unknown as Request);
      if (response.status !== WELCOME_STATUS || this.#isEnding) {
        reply.once('finish', () => socket.destroySoon());
        await sendReply(reply, response, request);
        return;
      }
      reply.detachSocket(socket);
      if (socket.destroyed) return;
      socket.write(SWITCHING);
      const connection = new FramedConnection(socket, this.#parts);
      this.#open.set(socket, connection);
      connection.start(head);
    } catch (error) {
      log.error('request failed', { method: message.method, path: message.url, error });
      socket.destroy();
    }
  }
}

function isNodeSince(major: number, minor: number): boolean {
  const [ours, oursMinor] = process.versions.node.split('.').map(Number);
  return ours! > major || (ours === major && oursMinor! >= minor);
}
