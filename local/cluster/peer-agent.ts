import { X509Certificate } from 'node:crypto';
import { Agent } from 'node:http';
import type { AgentOptions, ClientRequest, ClientRequestArgs } from 'node:http';
import * as net from 'node:net';
import type { Duplex } from 'node:stream';
import * as tls from 'node:tls';
import { domainToASCII } from 'node:url';
import { SkuaError } from '../../core/base/errors.ts';
import { serverContext } from '../tls/certificate-set.ts';
import type { CertificateSet } from '../tls/certificate-set.ts';

/**
 * An idle connection is closed after so many milliseconds: long before the other side does it (75 s), so that no
 * request is written to a connection that the other side is closing just then.
 */
export const IDLE_MS = 30_000;
/** A connection that is not there after so long will not come. */
const CONNECT_MS = 5_000;

export interface PeerAgentOptions {
  /** Null for plain HTTP. */
  readonly certificates: CertificateSet | null;
  /** An older connection is used no more, in milliseconds. */
  readonly lifetimeMs: number;
  /**
   * Other names under which a member is known, beside the host that is dialled: its certificate may name one of them.
   */
  readonly namesOf: (host: string, port: number) => readonly string[];
}

/**
 * Connections to members, kept open. A request gets its connection only once that is connected, and with TLS proved:
 * what failed before can't have arrived. Under one agent all connections have the certificates of its making.
 */
export class PeerAgent extends Agent {
  readonly #options: PeerAgentOptions;
  readonly #context: tls.SecureContext | null;
  readonly #openedMs = new WeakMap<Duplex, number>();
  #endsMs = Number.POSITIVE_INFINITY;

  constructor(options: PeerAgentOptions, agentOptions: AgentOptions = {}) {
    super({ keepAlive: true, scheduling: 'lifo', ...agentOptions });
    this.#options = options;
    this.#context = options.certificates === null ? null : tls.createSecureContext(serverContext(options.certificates));
  }

  /**
   * Connections that are idle end now. Others, and those that are still made, are not kept beyond so many milliseconds.
   */
  retire(inMs: number): void {
    this.#endsMs = performance.now() + inMs;
    for (const sockets of Object.values(this.freeSockets)) for (const socket of sockets ?? []) socket.destroy();
  }

  override createConnection(
    options: ClientRequestArgs,
    made?: (error: Error | null, socket: Duplex) => void,
  ): undefined {
    const host = options.host!;
    const port = Number(options.port);
    const socket =
      this.#context === null
        ? net.connect({ host, port, noDelay: true })
        : tls.connect({
            host,
            port,
            secureContext: this.#context,
            servername: net.isIP(host) === 0 ? host : '',
            ALPNProtocols: ['http/1.1'],
            rejectUnauthorized: true,
            checkServerIdentity: (_, { raw }) =>
              identityProblem(new X509Certificate(raw), [host, ...this.#options.namesOf(host, port)]),
          });
    socket.setNoDelay(true);
    const timer = setTimeout(
      () => socket.destroy(Object.assign(new Error(`no connection within ${CONNECT_MS} ms`), { code: 'ETIMEDOUT' })),
      CONNECT_MS,
    );
    const failed = (error: Error): void => {
      clearTimeout(timer);
      made!(error, null as never);
    };
    socket.once('error', failed);
    socket.once(this.#context === null ? 'connect' : 'secureConnect', () => {
      clearTimeout(timer);
      socket.off('error', failed);
      this.#openedMs.set(socket, performance.now());
      // The timeout is set only while no request uses the connection.
      socket.on('timeout', () => socket.destroy());
      made!(null, socket);
    });
  }

  /** When a connection of this agent is used no more, by the monotonic clock. */
  endsMsOf(socket: Duplex): number {
    return Math.min(this.#endsMs, (this.#openedMs.get(socket) ?? 0) + this.#options.lifetimeMs);
  }

  override keepSocketAlive(socket: Duplex): boolean {
    const leftMs = this.endsMsOf(socket) - performance.now();
    if (leftMs <= 0) return false;
    (socket as net.Socket).setTimeout(Math.min(IDLE_MS, leftMs)).unref();
    return true;
  }

  override reuseSocket(socket: Duplex, request: ClientRequest): void {
    (socket as net.Socket).setTimeout(0);
    super.reuseSocket(socket, request);
  }
}

/**
 * Why a member's certificate is none for these names: alternative names count, the common name only where there are
 * none; a wildcard stands for the whole first label.
 */
export function identityProblem(certificate: X509Certificate, names: readonly string[]): Error | undefined {
  const subject = certificate.subjectAltName === undefined ? 'default' : 'never';
  const isOne = (name: string): boolean => {
    if (net.isIP(name) !== 0) return certificate.checkIP(name) !== undefined;
    const ascii = domainToASCII(name);
    return ascii !== '' && certificate.checkHost(ascii, { subject, partialWildcards: false }) !== undefined;
  };
  if (names.some(isOne)) return undefined;
  return new SkuaError(
    'certificate_invalid',
    `The member's certificate is for ${certificate.subjectAltName ?? certificate.subject ?? 'nobody'}, and not for ${names.join(', ')}.`,
  );
}
