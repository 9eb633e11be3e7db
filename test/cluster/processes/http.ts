import { Agent, request } from 'node:http';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';

/** An answer, whole. */
export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** Why there is none. */
export class NoAnswer extends Error {
  /** `ECONNREFUSED`, `ECONNRESET`, `timeout` and others. */
  readonly code: string;

  constructor(code: string) {
    super(`no answer: ${code}`);
    this.code = code;
  }
}

export interface Asked {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Milliseconds for the whole answer. */
  readonly timeoutMs?: number;
}

/** A member that stands still holds a client up for no longer. */
const TIMEOUT_MS = 5_000;
export const agent = new Agent({ keepAlive: true, maxSockets: 256 });

/** Sends a request once; it is never repeated here. Rejects with `NoAnswer`. */
export function ask(
  url: string,
  { method = 'GET', headers = {}, body, timeoutMs = TIMEOUT_MS }: Asked = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const outgoing = request(url, {
      method,
      agent,
      headers: { ...headers, ...(body !== undefined && { 'content-length': String(Buffer.byteLength(body)) }) },
    });
    const timer = setTimeout(() => {
      fail('timeout');
    }, timeoutMs);
    const fail = (code: string): void => {
      clearTimeout(timer);
      outgoing.destroy();
      reject(new NoAnswer(code));
    };
    outgoing.on('error', (error: NodeJS.ErrnoException) => fail(error.code ?? error.message));
    outgoing.on('response', (response: IncomingMessage) => {
      const parts: Buffer[] = [];
      response.on('data', (part: Buffer) => parts.push(part));
      response.on('error', (error: NodeJS.ErrnoException) => fail(error.code ?? error.message));
      response.on('end', () => {
        clearTimeout(timer);
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text: Buffer.concat(parts).toString() });
      });
    });
    outgoing.end(body);
  });
}

/** The code of a problem document; empty where there is none. */
export function codeOf({ text }: Answer): string {
  return /"code":\s*"([a-z_]+)"/.exec(text)?.[1] ?? '';
}
