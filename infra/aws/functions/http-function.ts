import type { APIGatewayProxyStructuredResultV2, Context } from 'aws-lambda';
import { isSkuaError, SkuaError } from '../../../core/base/errors.ts';
import type { Log } from '../../../core/ports/log.ts';
import { outcomeOf, problemText } from '../../../handlers/http/problem-document.ts';
import { commonHeaders } from '../../../handlers/http/reply.ts';
import { ConfigError } from '../../runtime/config/option.ts';
import { jsonLine } from '../../runtime/log-line.ts';
import type { LineLevel, LogLevel } from '../../runtime/log-line.ts';
import { Deadline, limitedRequest } from './deadline.ts';
import { requestOf } from './request-of.ts';
import type { HttpEvent } from './request-of.ts';
import { problem, resultOf } from './result-of.ts';

/** A function that answers HTTP, once it is open. */
export interface OpenHttp {
  fetch(request: Request): Promise<Response> | Response;
  /** Resolves when nothing is under way that the platform would freeze. */
  settled(): Promise<void>;
}

export interface Call {
  readonly log: FunctionLog;
  readonly deadline: Deadline;
}

interface HttpFunction {
  /** Paths that the function serves. */
  readonly serves: (path: string) => boolean;
  /** Failures are answered without a body: of webhooks. */
  readonly hasNoErrorBodies?: boolean;
  /** Called with the first request, and again after it rejected. */
  readonly open: (call: Call) => Promise<OpenHttp>;
}

type HttpHandler = (
  event: HttpEvent,
  context: Pick<Context, 'awsRequestId' | 'getRemainingTimeInMillis'>,
) => Promise<APIGatewayProxyStructuredResultV2>;

/**
 * The handler of a function. What it needs is opened by the first request and kept while the process lives; a failure
 * to open is the answer to that request only. It never rejects: a rejection would be a reply without a reason.
 */
export function httpHandler(
  { serves, hasNoErrorBodies = false, open }: HttpFunction,
  log: FunctionLog = new FunctionLog('info'),
): HttpHandler {
  const deadline = new Deadline();
  let opening: Promise<OpenHttp> | null = null;
  async function answer(request: Request): Promise<APIGatewayProxyStructuredResultV2> {
    opening ??= open({ log, deadline });
    const opened = await opening.catch((error: unknown) => {
      opening = null;
      throw error;
    });
    const result = await resultOf(await opened.fetch(request), request.method);
    const over = new AbortController();
    await Promise.race([opened.settled(), sleep(deadline.leftMs(SETTLE_RESERVE_MS), over.signal)]);
    over.abort();
    return result;
  }
  return async (event, context) => {
    log.requestId = context.awsRequestId;
    deadline.begin(() => context.getRemainingTimeInMillis());
    try {
      const request = limitedRequest(requestOf(event), deadline);
      const { pathname } = new URL(request.url);
      if (!serves(pathname)) throw new SkuaError('not_found', `There is nothing at ${pathname} in this function.`);
      return await inTime(answer(request), deadline);
    } catch (error) {
      const { headers, ...failure } = failureOf(error, log);
      if (!hasNoErrorBodies) return { ...failure, headers };
      const { 'content-type': _, ...kept } = headers ?? {};
      return { ...failure, headers: kept, body: '' };
    }
  };
}

/** Milliseconds before the end at which a result that is there is given back, whatever is still under way. */
const SETTLE_RESERVE_MS = 500;
/** And at which a call without a result is given up. Waits inside a call end before. */
const GIVE_UP_RESERVE_MS = 300;

/** The platform would answer a call that takes too long without saying why. */
async function inTime<T>(reply: Promise<T>, deadline: Deadline): Promise<T> {
  const over = new AbortController();
  const tooLate = sleep(deadline.leftMs(GIVE_UP_RESERVE_MS), over.signal).then(() => {
    throw new SkuaError(
      'aborted',
      'The function had no time left to answer. Try again; a write may or may not have happened, so repeat it with the same event ids.',
    );
  });
  // Only one of the two is waited for in the end.
  tooLate.catch(() => {});
  reply.catch(() => {});
  try {
    return await Promise.race([reply, tooLate]);
  } finally {
    over.abort();
  }
}

const TIMER_MS_MAX = 2_147_483_647;

function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, Math.min(ms, TIMER_MS_MAX));
    signal?.addEventListener('abort', () => clearTimeout(timer));
  });
}

function failureOf(error: unknown, log: FunctionLog): APIGatewayProxyStructuredResultV2 {
  if (error instanceof ConfigError) {
    log.error('the function is misconfigured', { problems: error.problems });
    return problem(
      500,
      'bad_option',
      'Internal Server Error',
      'The function is misconfigured. See its log for what to change.',
    );
  }
  if (!isSkuaError(error)) {
    log.error('the call failed', { error });
    return problem(
      500,
      'internal',
      'Internal Server Error',
      'The request failed inside the function. See its log for the reason.',
    );
  }
  const { status, reason, headers } = outcomeOf(error.code);
  if (status < 500)
    return {
      statusCode: status,
      headers: { ...commonHeaders(''), ...headers, 'content-type': 'application/problem+json; charset=utf-8' },
      body: problemText(error, reason),
      isBase64Encoded: false,
    };
  log.error("the function can't serve the call", { error, code: error.code });
  // What is wrong with the storage is the operator's business, and stands in the log; the code tells a client whether
  // to come again.
  return problem(
    status === 500 ? 503 : status,
    error.code,
    status === 500 ? 'Service Unavailable' : reason,
    'The function could not open the store. See its log for the reason.',
    { 'retry-after': '5', ...headers },
  );
}

const RANKS: Readonly<Record<LogLevel, number>> = { debug: 0, info: 1, warn: 2, error: 3, off: 4 };
const NO_FIELDS = {};

/** A JSON object a line, which the platform collects; `requestId` says during which call it was written. */
export class FunctionLog implements Log {
  #rank: number;
  readonly #write: (text: string) => void;
  requestId: string | null = null;

  constructor(
    level: LogLevel,
    write: (text: string) => void = (text) => {
      process.stdout.write(text);
    },
  ) {
    this.#rank = RANKS[level];
    this.#write = write;
  }

  setLevel(level: LogLevel): void {
    this.#rank = RANKS[level];
  }

  debug(message: string, fields: Record<string, unknown> = NO_FIELDS): void {
    this.#line('debug', message, fields);
  }
  info(message: string, fields: Record<string, unknown> = NO_FIELDS): void {
    this.#line('info', message, fields);
  }
  warn(message: string, fields: Record<string, unknown> = NO_FIELDS): void {
    this.#line('warn', message, fields);
  }
  error(message: string, fields: Record<string, unknown> = NO_FIELDS): void {
    this.#line('error', message, fields);
  }

  #line(level: LineLevel, message: string, fields: Record<string, unknown>): void {
    if (RANKS[level] < this.#rank) return;
    this.#write(
      jsonLine({
        atMs: Date.now(),
        level,
        message,
        fields: this.requestId === null ? fields : { requestId: this.requestId, ...fields },
      }),
    );
  }
}
