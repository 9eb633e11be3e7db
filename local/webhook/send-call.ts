import { CommandError } from '../cli/failure.ts';
import { EXIT } from '../cli/io.ts';
import { UsageError } from '../cli/usage-error.ts';
import { VERSION } from '../version.ts';

/** Characters of an answer's body that are shown. */
const SHOWN_LENGTH_MAX = 500;
/** Headers that the connection itself is run by. */
const CONNECTION_HEADERS: ReadonlySet<string> = new Set(['connection', 'content-length', 'expect', 'host', 'keep-alive', 'te', 'trailer', 'transfer-encoding', 'upgrade']);

export interface Call {
  readonly url: string;
  /** By lower-cased name. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Uint8Array<ArrayBuffer>;
  readonly timeoutMs: number;
}

export interface Answer {
  readonly status: number;
  readonly statusText: string;
  /** Beginning of the answer's text; a node sends none. */
  readonly text: string;
}

/** Posts a call once, as a sender would. Errors: `receiver_unreachable`, `receiver_silent`; a UsageError for a header that can't be sent. */
export async function postCall({ url, headers, body, timeoutMs }: Call): Promise<Answer> {
  const sent = sendable(headers);
  const signal = AbortSignal.timeout(timeoutMs);
  try {
    const response = await fetch(url, { method: 'POST', headers: sent, body, redirect: 'manual', signal });
    return { status: response.status, statusText: response.statusText, text: await beginningOf(response) };
  } catch (error) {
    if (signal.aborted) throw new CommandError('receiver_silent', `${url} has not answered within ${timeoutMs / 1000} s; the event may still be written. --timeout waits longer.`, EXIT.unreachable);
    const cause = (error as Error).cause as NodeJS.ErrnoException | undefined;
    throw new CommandError('receiver_unreachable', `Nobody answers at ${url} (${cause?.code ?? cause?.message ?? (error as Error).message}).`, EXIT.unreachable);
  }
}

function sendable(headers: ReadonlyMap<string, string>): Headers {
  const sent = new Headers({ 'user-agent': `skua/${VERSION}` });
  for (const [name, value] of headers) {
    if (CONNECTION_HEADERS.has(name)) throw new UsageError(`--header can't set ${name}: the connection decides it.`);
    try {
      sent.set(name, value);
    } catch {
      throw new UsageError(`--header: '${name}' with this value is no header that HTTP can carry.`);
    }
  }
  return sent;
}

async function beginningOf(response: Response): Promise<string> {
  if (response.body === null) return '';
  const decoder = new TextDecoder();
  let text = '';
  for await (const part of response.body) {
    text += decoder.decode(part as Uint8Array, { stream: true });
    if (text.length > SHOWN_LENGTH_MAX) break;
  }
  // Nothing that a terminal would obey.
  return text.slice(0, SHOWN_LENGTH_MAX).replaceAll(/\p{Cc}+/gu, ' ').trim();
}
