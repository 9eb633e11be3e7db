import { Agent, request } from 'node:https';
import type { IncomingMessage } from 'node:http';
import * as tls from 'node:tls';
import { certificatesIn } from '../../infra/pem.ts';
import { CommandError } from '../../infra/runtime/failure.ts';
import { readInput } from './input.ts';
import { EXIT } from '../../infra/runtime/io.ts';
import { isUntrusted } from './tls-failure.ts';

/** Longest file of authorities, in bytes, and most certificates that are taken from it. */
const CA_BYTES_MAX = 1_048_576;
const CA_CERTIFICATES_MAX = 4_096;

interface Sent {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>> | Headers;
  readonly body: string | Uint8Array | null;
  readonly signal: AbortSignal;
}

/**
 * Whom a command trusts to vouch for a node: the authorities that Node.js has, those of the system, and those of a
 * file.
 */
export class Trust {
  /** The file with further authorities; null for none. */
  readonly file: string | null;
  #authorities: readonly string[] | null = null;
  #agent: Agent | null = null;
  #hasSystem = false;

  constructor(file: string | null) {
    this.file = file;
  }

  /** Reads the file, once. Errors: `ca_unreadable`, `ca_invalid`. */
  async load(): Promise<void> {
    if (this.#authorities !== null) return;
    this.#authorities = this.file === null ? [] : await readAuthorities(this.file);
  }

  /** As `fetch`, but that redirects are answers. Rejects with what the connection fails with. */
  async fetch(url: string, sent: Sent): Promise<Response> {
    await this.load();
    try {
      return await exchange(url, sent, (this.#agent ??= this.#agentOf()));
    } catch (error) {
      // Those of the system take a while to read, and few nodes need them. Nothing of the request has been sent so far.
      if (!isUntrusted(error) || this.#hasSystem) throw error;
      this.#hasSystem = true;
      this.#agent = this.#agentOf();
      return exchange(url, sent, this.#agent);
    }
  }

  #agentOf(): Agent {
    const given = this.#authorities!;
    const ca =
      given.length === 0 && !this.#hasSystem
        ? undefined
        : [
            ...new Set([
              ...tls.getCACertificates('default'),
              ...(this.#hasSystem ? tls.getCACertificates('system') : []),
              ...given,
            ]),
          ];
    // An intermediate authority that is named is trusted, even where its root is not known.
    return new Agent({ keepAlive: true, secureContext: tls.createSecureContext({ ca, allowPartialTrustChain: true }) });
  }
}

async function readAuthorities(file: string): Promise<readonly string[]> {
  const bytes = Buffer.from(
    await readInput(file, CA_BYTES_MAX).catch((error: CommandError) => {
      throw new CommandError('ca_unreadable', `--ca (or SKUA_CA): ${error.message}`, error.exitCode);
    }),
  );
  try {
    return certificatesIn(bytes, CA_CERTIFICATES_MAX).map((certificate) => certificate.toString());
  } catch (error) {
    throw new CommandError(
      'ca_invalid',
      `--ca (or SKUA_CA): ${file}: ${(error as Error).message} Give the certificate of the authority that issued the node's certificate, in PEM.`,
      EXIT.failed,
    );
  }
}

function exchange(url: string, { method, headers, body, signal }: Sent, agent: Agent): Promise<Response> {
  return new Promise((resolve, reject) => {
    const given = headers instanceof Headers ? Object.fromEntries(headers) : headers;
    const sending = request(url, { method, agent, signal, headers: { accept: '*/*', ...given } }, (message) => {
      const status = message.statusCode!;
      const received = new Headers();
      for (let i = 0; i + 1 < message.rawHeaders.length; i += 2)
        received.append(message.rawHeaders[i]!, message.rawHeaders[i + 1]!);
      const isEmpty = status === 204 || status === 205 || status === 304;
      if (isEmpty) message.resume();
      resolve(
        new Response(isEmpty ? null : bodyOf(message, signal), {
          status,
          statusText: message.statusMessage ?? '',
          headers: received,
        }),
      );
    });
    sending.on('error', reject);
    sending.end(body ?? undefined);
  });
}

/** What fails while it is read is a TypeError, as with `fetch`. */
function bodyOf(message: IncomingMessage, signal: AbortSignal): ReadableStream<Uint8Array> {
  const pieces = message[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const piece = await pieces.next();
          if (piece.done === true) controller.close();
          else controller.enqueue(piece.value);
        } catch (error) {
          throw signal.aborted ? signal.reason : new TypeError('terminated', { cause: error });
        }
      },
      cancel() {
        message.destroy();
      },
    },
    { highWaterMark: 0 },
  );
}
