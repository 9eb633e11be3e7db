import type { Server, Socket } from 'node:net';
import type { Clock } from '../../core/ports/clock.ts';
import type { Log } from '../../core/ports/log.ts';
import type { Meter } from '../../core/ports/meter.ts';
import { addressGroup } from '../../core/base/address-group.ts';
import { connectionAddress } from './client-address.ts';

/** Open connections of all clients together. */
export const CONNECTIONS_MAX = 10_000;
/** Refusals are logged at most this often. */
const LINE_MS = 60_000;

export interface ConnectionLimitParts {
  /** Open connections of one address, or IPv6 network (option MaxConnectionsPerAddress). */
  readonly perAddressMax: number;
  /** Connections that are not counted by address: those of proxies, which bring many clients. */
  readonly isExempt: (socket: Socket) => boolean;
  readonly log: Log;
  readonly meter: Meter;
  readonly clock: Clock;
}

const REFUSAL = 'HTTP/1.1 503 Service Unavailable\r\nRetry-After: 10\r\nConnection: close\r\nContent-Length: 0\r\n\r\n';

/**
 * Bounds the connections of a server, together and by address, so that one client can't use up those of all. What is
 * too many is closed at once, over plain HTTP with an answer; what is open goes on.
 */
export function limitConnections(server: Server, isPlain: boolean, parts: ConnectionLimitParts): void {
  const open = new Map<string, number>();
  const refused = new Refusals(parts);
  server.maxConnections = CONNECTIONS_MAX;
  server.on('drop', (dropped) => refused.note('total', dropped?.remoteAddress ?? null));
  server.on('connection', (socket: Socket) => {
    if (parts.isExempt(socket)) return;
    const address = connectionAddress(socket);
    const group = addressGroup(address);
    const count = open.get(group) ?? 0;
    if (count >= parts.perAddressMax) {
      refused.note('address', address);
      if (isPlain) socket.write(REFUSAL);
      socket.destroySoon();
      return;
    }
    open.set(group, count + 1);
    socket.once('close', () => {
      const left = open.get(group)! - 1;
      if (left > 0) open.set(group, left);
      else open.delete(group);
    });
  });
}

/** Tells of what was refused: each in the metric, and now and then one in the log, with how many there were. */
class Refusals {
  readonly #parts: ConnectionLimitParts;
  #count = 0;
  #lineMs = Number.NEGATIVE_INFINITY;

  constructor(parts: ConnectionLimitParts) {
    this.#parts = parts;
  }

  note(limit: 'address' | 'total', address: string | null): void {
    const { perAddressMax, log, meter, clock } = this.#parts;
    meter.count('eventstore_http_connections_refused_total', 1, { limit });
    this.#count++;
    const now = clock.monotonicMs();
    if (now - this.#lineMs < LINE_MS) return;
    log.warn('connections were refused: too many are open', {
      limit: limit === 'address' ? `MaxConnectionsPerAddress ${perAddressMax}` : CONNECTIONS_MAX,
      address,
      refusedSinceLastLine: this.#count,
    });
    this.#count = 0;
    this.#lineMs = now;
  }
}
