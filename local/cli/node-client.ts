import { withoutTrailing } from '../../core/base/text.ts';
import { caOf, nodeOf } from './command.ts';
import { CommandError } from '../../infra/runtime/failure.ts';
import { EXIT } from '../../infra/runtime/io.ts';
import type { ExitCode, Io } from '../../infra/runtime/io.ts';
import { startCommand } from './started-by.ts';
import { explainTls } from './tls-failure.ts';
import { Trust } from './trust.ts';

/** Longest time in milliseconds that a call may take, unless it is one that waits. */
const CALL_MS_MAX = 30_000;
/** Characters of an unexpected answer that are shown. */
const SHOWN_LENGTH_MAX = 500;
const LOGIN = 'Commands take them from SKUA_USER and SKUA_PASSWORD, or from the address of the node.';

interface CallOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Ends a call that may take as long as it wants; without it a call has 30 seconds. */
  readonly signal?: AbortSignal;
}

/** An answer that was not asked for, with the `code` and `detail` of its problem document where it has one. */
export class AnswerError extends CommandError {
  readonly status: number;
  /** Members of the problem document. */
  readonly problem: Readonly<Record<string, unknown>>;

  constructor(
    status: number,
    code: string,
    message: string,
    exitCode: ExitCode,
    problem: Readonly<Record<string, unknown>>,
  ) {
    super(code, message, exitCode);
    this.status = status;
    this.problem = problem;
  }
}

/** Calls a running node over its public HTTP interface. */
export class NodeClient {
  /** Address without credentials. */
  readonly base: string;
  readonly #headers: Readonly<Record<string, string>>;

  readonly #trust: Trust;
  /**
   * A file with authorities was named for this call, and not by the environment, which may be meant for other nodes.
   */
  readonly #isTrustGiven: boolean;

  /**
   * `node` may carry credentials; otherwise those of the environment are used. So it is with `ca`, a file with
   * authorities.
   */
  constructor(node: string, env: Io['env'], ca: string | null = null) {
    const url = new URL(node);
    const name = decodeURIComponent(url.username) || env['SKUA_USER'];
    const secret = decodeURIComponent(url.password) || env['SKUA_PASSWORD'] || '';
    this.#headers = name ? { authorization: `Basic ${Buffer.from(`${name}:${secret}`).toString('base64')}` } : {};
    url.username = '';
    url.password = '';
    this.base = withoutTrailing(url.href, '/');
    this.#trust = new Trust(caOf(ca, env));
    this.#isTrustGiven = ca !== null;
  }

  /** The node that the options of a command name. */
  static of({ node, ca }: { readonly node: string | null; readonly ca: string | null }, env: Io['env']): NodeClient {
    return new NodeClient(nodeOf(node, { env }), env, ca);
  }

  /** The same node without a login, as senders of webhooks see it. */
  withoutLogin(): NodeClient {
    return new NodeClient(this.base, {}, this.#trust.file);
  }

  /**
   * Rejects with `node_unreachable` when no node answers, with what is wrong with TLS or certificates, and with the
   * signal's reason when it ended the call.
   */
  async call(method: string, path: string, { headers, body, signal }: CallOptions = {}): Promise<Response> {
    const isTls = this.base.startsWith('https:');
    if (this.#isTrustGiven) await this.#trust.load();
    const sent = {
      method,
      headers: { ...this.#headers, ...headers },
      body: body ?? null,
      signal: signal ?? AbortSignal.timeout(CALL_MS_MAX),
    };
    try {
      return await (isTls ? this.#trust.fetch(this.base + path, sent) : fetch(this.base + path, sent));
    } catch (error) {
      if (signal?.aborted === true) throw signal.reason;
      if (error instanceof CommandError) throw error;
      const failure = await explainTls(error, this.base, { file: this.#trust.file, option: '--node' });
      if (failure !== null) throw new CommandError(failure.code, failure.message, EXIT.unreachable);
      const cause = (error as Error).cause as NodeJS.ErrnoException | undefined;
      const reason = cause?.code ?? cause?.message ?? (error as Error).message;
      throw new CommandError(
        'node_unreachable',
        `No node answers at ${this.base} (${reason}). Start one in another terminal with \`${startCommand(process.env)}\`, or name another one with --node URL, or in SKUA_NODE.`,
        EXIT.unreachable,
      );
    }
  }
}

/** The answer's text, or an AnswerError that says what the node said; `what` completes "when …". */
export async function expectStatus(response: Response, statuses: readonly number[], what: string): Promise<string> {
  const text = await response.text();
  if (statuses.includes(response.status)) return text;
  const problem = problemOf(response, text);
  const { code, detail, hint } = problem;
  if (typeof code === 'string' && typeof detail === 'string') {
    throw new AnswerError(
      response.status,
      code,
      `${sentence(detail)}${typeof hint === 'string' ? ` ${hint}` : ''}${code === 'not_authenticated' ? ` ${LOGIN}` : ''}`,
      exitCodeOf(response.status),
      problem,
    );
  }
  throw new AnswerError(
    response.status,
    'unexpected_answer',
    `The node answered ${response.status} ${response.statusText} while ${what}. ${text.slice(0, SHOWN_LENGTH_MAX)}`.trimEnd(),
    exitCodeOf(response.status),
    problem,
  );
}

function problemOf(response: Response, text: string): Record<string, unknown> {
  if (response.headers.get('content-type')?.startsWith('application/problem+json') !== true) return {};
  return JSON.parse(text) as Record<string, unknown>;
}

function sentence(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`;
}

function exitCodeOf(status: number): ExitCode {
  if (status === 401 || status === 403 || status === 409) return EXIT.refused;
  return status === 503 ? EXIT.unreachable : EXIT.failed;
}
