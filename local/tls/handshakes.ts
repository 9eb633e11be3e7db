import type { Server } from 'node:https';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { Log } from '../../core/ports/log.ts';
import { systemClock } from '../../infra/system-clock.ts';
import { serverContext } from './certificate-set.ts';
import type { CertificateSet } from './certificate-set.ts';
import { judgePeer } from './peer.ts';

export interface Handshakes {
  setCertificates(certificates: CertificateSet): void;
  /** Cuts off the connections that are not through their handshake: the HTTP server does not know of them. */
  abort(): void;
}

/** Names of nodes from before reloads that are known at a time. */
const FORMER_NAMES_MAX = 4;

/**
 * Watches over the beginning of connections: judges clients' certificates, and ends what fails without an answer. For
 * `formerNamesMs` after a change of the name of nodes their former one counts, too: in a cluster they get their new
 * certificates one after the other.
 */
export function guardHandshakes(server: Server, certificates: CertificateSet, log: Log, formerNamesMs = 0): Handshakes {
  const noted = new HandshakeLog(log, () => systemClock.monotonicMs());
  const pending = new Map<string, Socket>();
  let inForce = certificates;
  let former: readonly { readonly name: string; readonly untilMs: number }[] = [];
  askClients(server, certificates);

  server.on('connection', (socket: Socket) => {
    // The secure connection is another object; only its addresses tell that it belongs to this one.
    const key = endsOf(socket);
    pending.set(key, socket);
    socket.once('close', () => {
      if (pending.get(key) === socket) pending.delete(key);
    });
  });
  server.on('secureConnection', (socket: TLSSocket) => {
    pending.delete(endsOf(socket));
    const nowMs = systemClock.monotonicMs();
    const problem = judgePeer(
      socket,
      inForce,
      former.filter(({ untilMs }) => nowMs < untilMs).map(({ name }) => name),
    );
    if (problem !== null)
      noted.note('a client certificate is not that of a node', { address: socket.remoteAddress, reason: problem });
  });
  // Ahead of the listener by which an HTTPS server would make it an error of HTTP, and have it answered in plain text.
  server.prependListener('tlsClientError', (error: NodeJS.ErrnoException, socket: TLSSocket) => {
    noted.note('a TLS handshake failed', { address: socket.remoteAddress, reason: error.code ?? error.message });
    socket.destroy();
  });
  return {
    setCertificates: (next) => {
      server.setSecureContext(serverContext(next));
      const name = inForce.reservedNodeCommonName;
      if (name !== null && formerNamesMs > 0)
        former = [
          { name, untilMs: systemClock.monotonicMs() + formerNamesMs },
          ...former.filter((one) => one.name !== name),
        ].slice(0, FORMER_NAMES_MAX);
      inForce = next;
      askClients(server, next);
    },
    abort: () => {
      for (const socket of pending.values()) socket.destroy();
    },
  };
}

/**
 * Clients are asked for a certificate only where one can prove a node: browsers open a box for the question. The server
 * looks at this for each connection; no call of its own sets it while it runs.
 */
function askClients(server: Server, { trustsNodes }: CertificateSet): void {
  Object.assign(server, { requestCert: trustsNodes });
}

function endsOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

const WINDOW_MS = 60_000;
const LINES_MAX = 20;

/** Logs what goes wrong at the beginning of connections, at most so many lines a minute: any client can cause them. */
export class HandshakeLog {
  readonly #log: Log;
  readonly #monotonicMs: () => number;
  #windowStart = Number.NEGATIVE_INFINITY;
  #lines = 0;
  #suppressed = 0;

  constructor(log: Log, monotonicMs: () => number) {
    this.#log = log;
    this.#monotonicMs = monotonicMs;
  }

  note(message: string, fields: Record<string, unknown>): void {
    const now = this.#monotonicMs();
    if (now - this.#windowStart >= WINDOW_MS) {
      if (this.#suppressed > 0)
        this.#log.debug('lines about TLS connections were dropped', { count: this.#suppressed });
      this.#windowStart = now;
      this.#lines = 0;
      this.#suppressed = 0;
    }
    if (this.#lines++ < LINES_MAX) this.#log.debug(message, fields);
    else this.#suppressed++;
  }
}
