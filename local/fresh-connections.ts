import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Connections on which no request has begun, such as those that browsers and balancers open in advance. Node.js does
 * not count them as idle, so that each would hold up the end of the server.
 */
export class FreshConnections {
  readonly #sockets = new Set<Socket>();

  constructor(server: Server, event: 'connection' | 'secureConnection') {
    server.on(event, (socket: Socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
  }

  /** A request has begun. */
  used(socket: Socket): void {
    this.#sockets.delete(socket);
  }

  abort(): void {
    for (const socket of this.#sockets) socket.destroy();
  }
}
