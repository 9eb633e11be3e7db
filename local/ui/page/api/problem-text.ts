/** A request that was not answered as asked: what the node said of it, or that it said nothing. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  /** Of the node (`stream_not_found`), or of ours: `unreachable`, `timeout`, `aborted`, `unreadable`. */
  readonly code: string;
  /** 0 where there was no answer. */
  readonly status: number;
  readonly hint: string | null;
  /** Whatever else the problem document holds. */
  readonly data: Readonly<Record<string, unknown>>;
  readonly retryAfterMs: number | null;
  readonly atMs = Date.now();

  constructor(
    code: string,
    message: string,
    {
      status = 0,
      hint = null,
      data = {},
      retryAfterMs = null,
    }: Partial<Pick<ApiError, 'status' | 'hint' | 'data' | 'retryAfterMs'>> = {},
  ) {
    super(message);
    this.code = code;
    this.status = status;
    this.hint = hint;
    this.data = data;
    this.retryAfterMs = retryAfterMs;
  }

  /** Whether the node is away or not ready yet. */
  get isAway(): boolean {
    return (
      this.code === 'unreachable' || (this.status === 503 && (this.code === 'not_ready' || this.code === 'http_503'))
    );
  }

  /** Whether waiting may help. */
  get isPassing(): boolean {
    return (
      this.code === 'unreachable' ||
      this.code === 'timeout' ||
      this.status === 502 ||
      this.status === 503 ||
      this.status === 504
    );
  }
}

export function errorOf(thrown: unknown): ApiError {
  return thrown instanceof ApiError
    ? thrown
    : new ApiError('unexpected', thrown instanceof Error ? thrown.message : String(thrown));
}

/**
 * What a reply that is no success says. Problem documents have `code`, `detail` and `hint`; what stands in front of a
 * node may answer with anything.
 */
export async function problemOf(response: Response): Promise<ApiError> {
  let data: Record<string, unknown> = {};
  try {
    const value: unknown = await response.json();
    if (typeof value === 'object' && value !== null) data = value as Record<string, unknown>;
  } catch {
    // No document: the status has to do.
  }
  const text = (name: string) => (typeof data[name] === 'string' && data[name] !== '' ? data[name] : null);
  const seconds = Number(response.headers.get('retry-after'));
  const said =
    text('detail') ??
    text('message') ??
    text('title') ??
    `The node answered with ${response.status} ${response.statusText}`;
  return new ApiError(
    text('code') ?? `http_${response.status}`,
    // A hint may follow.
    /[.!?]$/.test(said) ? said : `${said}.`,
    {
      status: response.status,
      hint: text('hint'),
      data,
      retryAfterMs: seconds > 0 ? seconds * 1_000 : null,
    },
  );
}
