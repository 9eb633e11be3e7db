import type { Server } from 'node:https';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { Log } from '../../core/ports/log.ts';
import { systemClock } from '../../infra/clock.ts';
import type { CertificateSet } from './certificate-set.ts';
import { serverContext } from './certificate-set.ts';
import { HandshakeLog } from './handshake-log.ts';
import { judgePeer } from './peer.ts';

export interface Handshakes {
  setCertificates(certificates: CertificateSet): void;
  /** Cuts off the connections that are not through their handshake: the HTTP server does not know of them. */
  abort(): void;
}

/** Watches over the beginning of connections: judges clients' certificates, and ends what fails without an answer. */
export function guardHandshakes(server: Server, certificates: CertificateSet, log: Log): Handshakes {
  const noted = new HandshakeLog(log, () => systemClock.monotonicMs());
  const pending = new Map<string, Socket>();
  let reservedName = certificates.reservedNodeCommonName;

  server.on('connection', (socket: Socket) => {
    // The secure connection is another object; only its addresses tell that it belongs to this one.
    const key = endsOf(socket);
    pending.set(key, socket);
    socket.once('close', () => { if (pending.get(key) === socket) pending.delete(key); });
  });
  server.on('secureConnection', (socket: TLSSocket) => {
    pending.delete(endsOf(socket));
    const problem = judgePeer(socket, reservedName);
    if (problem !== null) noted.note('a client certificate does not prove a node', { address: socket.remoteAddress, reason: problem });
  });
  // Ahead of the listener by which an HTTPS server would make it an error of HTTP, and have it answered in plain text.
  server.prependListener('tlsClientError', (error: NodeJS.ErrnoException, socket: TLSSocket) => {
    noted.note('a TLS handshake failed', { address: socket.remoteAddress, reason: error.code ?? error.message });
    socket.destroy();
  });
  return {
    setCertificates: (next) => {
      server.setSecureContext(serverContext(next));
      reservedName = next.reservedNodeCommonName;
    },
    abort: () => { for (const socket of pending.values()) socket.destroy(); },
  };
}

function endsOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
