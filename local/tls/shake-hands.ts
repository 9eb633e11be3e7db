import * as stream from 'node:stream';
import { connect, TLSSocket } from 'node:tls';
import type { SecureContext } from 'node:tls';

/**
 * Shakes hands over a pair of pipes in memory, as a server with this certificate and a client that trusts these
 * authorities, and gives what that client has seen. What the TLS library makes of a certificate is told by nothing
 * else. Rejects where the two don't come together.
 */
export function shakeHands<T>(
  secureContext: SecureContext,
  trusted: readonly string[],
  seen: (client: TLSSocket) => T,
): Promise<T> {
  const [ours, theirs] = stream.duplexPair();
  const server = new TLSSocket(ours, { isServer: true, secureContext });
  // Nothing is sent over the connection: a certificate that was not verified is only looked at.
  const client = connect({
    socket: theirs,
    ca: [...trusted],
    rejectUnauthorized: false,
    checkServerIdentity: () => undefined,
  });
  const shaken = new Promise<T>((resolve, reject) => {
    client.on('secureConnect', () => {
      try {
        resolve(seen(client));
      } catch (error) {
        reject(error as Error);
      }
    });
    client.on('error', reject);
    server.on('error', reject);
  });
  return shaken.finally(() => {
    client.destroy();
    server.destroy();
  });
}
