import { snapshotShape } from '../../core/backup/format/snapshot-shape.ts';
import type { BackupSource, Snapshot } from '../../core/store/api.ts';
import { SkuaError } from '../../core/base/errors.ts';
import type { Clock } from '../../core/ports/clock.ts';
import { wrongText } from '../../core/base/shape.ts';
import type { HoldDocument, SnapshotDocument } from '../../handlers/documents/backup.ts';
import { CommandError } from '../../infra/runtime/failure.ts';
import { EXIT } from '../../infra/runtime/io.ts';
import { AnswerError, expectStatus } from '../cli/node-client.ts';
import type { NodeClient } from '../cli/node-client.ts';
import { afterDelay } from '../../core/base/background.ts';

const HOLD = '/admin/backup/hold';
const FILES = '/admin/backup/files';
/** A hold ends 60 s after its last use: two renewals may be lost. */
const RENEW_MS = 20_000;
/**
 * How often one read is taken up again where its connection broke, and the time before the first of these; it doubles.
 */
const RESUMES_MAX = 6;
const RESUME_MS = 250;
/** A connection over which nothing comes for so long counts as broken. */
const SILENCE_MS_MAX = 30_000;
/** The end of a hold is not waited for any longer: it would end by itself. */
const RELEASE_MS_MAX = 5_000;

interface HttpSourceOptions {
  readonly node: NodeClient;
  readonly clock: Clock;
  /** Ends what is under way; its reason is thrown. */
  readonly signal: AbortSignal;
}

/**
 * The files of a running node, over the routes of its hold, which is renewed until `release`. Reads that break off go
 * on where they stopped. Rejects with the node's own refusals: `scavenge_in_progress`, `too_busy`, missing credentials.
 */
export async function openHttpSource(options: HttpSourceOptions): Promise<BackupSource> {
  const { node, signal } = options;
  const { holdId } = await json<HoldDocument>(
    await node.call('POST', HOLD, { signal }),
    'asking the node to hold its files',
  );
  const source = new HttpSource(options, holdId);
  try {
    await source.load();
    return source;
  } catch (error) {
    await source.release();
    throw error;
  }
}

async function json<T>(response: Response, what: string): Promise<T> {
  return JSON.parse(await expectStatus(response, [200], what)) as T;
}

class HttpSource implements BackupSource {
  readonly #node: NodeClient;
  readonly #clock: Clock;
  readonly #signal: AbortSignal;
  readonly #holdId: string;
  readonly #ending = new AbortController();
  readonly #renewing: Promise<void>;
  #snapshot: Snapshot | null = null;

  constructor({ node, clock, signal }: HttpSourceOptions, holdId: string) {
    this.#node = node;
    this.#clock = clock;
    this.#signal = signal;
    this.#holdId = holdId;
    this.#renewing = this.#renew();
  }

  get snapshot(): Snapshot {
    return this.#snapshot!;
  }

  async load(): Promise<void> {
    const response = await this.#node.call('GET', `${FILES}?hold=${encodeURIComponent(this.#holdId)}`, {
      signal: this.#signal,
    });
    const snapshot = await json<SnapshotDocument>(response, 'listing the files of the node');
    const wrong = snapshotShape(snapshot, '');
    if (wrong !== null)
      throw new SkuaError(
        'backup_failed',
        `The file list of ${this.#node.base} ${wrongText(wrong)}. Nothing was copied: check that a Skua node answers there.`,
        { member: wrong.member },
      );
    this.#snapshot = snapshot;
  }

  async *read(path: string, position: number, length: number): AsyncGenerator<Uint8Array, void, undefined> {
    let done = 0;
    for (let broken = 0; done < length;) {
      try {
        for await (const piece of this.#pieces(path, position + done, length - done)) {
          done += piece.length;
          broken = 0;
          yield piece;
        }
        if (done < length) throw new Broken(`the answer ended after ${done} of ${length} bytes`);
      } catch (error) {
        this.#signal.throwIfAborted();
        if (!isBroken(error)) throw error;
        if (++broken > RESUMES_MAX)
          throw new CommandError(
            'node_unreachable',
            `The connection to ${this.#node.base} broke ${broken} times while ${path} was read (${(error as Error).message}). Repeat the command when the node is reachable: it copies only what is missing.`,
            EXIT.unreachable,
          );
        await this.#clock.sleep(RESUME_MS * 2 ** (broken - 1), this.#signal);
      }
    }
  }

  /** What one request gives. */
  async *#pieces(path: string, from: number, length: number): AsyncGenerator<Uint8Array, void, undefined> {
    const silence = new Silence(this.#clock);
    const signal = AbortSignal.any([this.#signal, silence.signal]);
    try {
      silence.begin();
      const url = `${FILES}/${path.split('/').map(encodeURIComponent).join('/')}?hold=${encodeURIComponent(this.#holdId)}&from=${from}&length=${length}`;
      const response = await this.#node.call('GET', url, { signal });
      if (response.status !== 200) await refused(response, path);
      const reader = response.body?.getReader();
      for (let next = await reader?.read(); next !== undefined && !next.done; next = await reader!.read()) {
        silence.end();
        yield next.value;
        silence.begin();
      }
    } finally {
      silence.end();
      silence.stop();
    }
  }

  /**
   * Until the end. A renewal that fails is made up for by the next one; where the hold is gone the next read says so.
   */
  async #renew(): Promise<void> {
    const { signal } = this.#ending;
    for (;;) {
      await this.#clock.sleep(RENEW_MS, signal);
      if (signal.aborted) return;
      try {
        const response = await this.#node.call('POST', `${HOLD}/${encodeURIComponent(this.#holdId)}`, {
          signal: AbortSignal.any([signal, AbortSignal.timeout(RENEW_MS)]),
        });
        await response.body?.cancel();
      } catch {
        // The node does not answer for now.
      }
    }
  }

  async release(): Promise<void> {
    if (this.#ending.signal.aborted) return;
    this.#ending.abort();
    await this.#renewing;
    try {
      const response = await this.#node.call('DELETE', `${HOLD}/${encodeURIComponent(this.#holdId)}`, {
        signal: AbortSignal.timeout(RELEASE_MS_MAX),
      });
      await response.body?.cancel();
    } catch {
      // It ends by itself.
    }
  }
}

/** Ends a request when nothing has come for too long. */
class Silence {
  readonly #controller = new AbortController();
  readonly #clock: Clock;
  #waiting: AbortController | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  begin(): void {
    const waiting = new AbortController();
    this.#waiting = waiting;
    afterDelay(this.#clock, SILENCE_MS_MAX, waiting.signal, () => {
      if (!waiting.signal.aborted) this.#controller.abort(new Broken(`no data for ${SILENCE_MS_MAX / 1_000} s`));
    });
  }

  end(): void {
    this.#waiting?.abort();
  }

  /** Lets go of a connection whose answer is not read to its end. */
  stop(): void {
    this.#controller.abort(new Broken('the reader has left'));
  }
}

class Broken extends Error {}

/** Worth another try: the connection broke, or the node was out of reach for a moment. */
function isBroken(error: unknown): boolean {
  if (error instanceof Broken) return true;
  if (error instanceof AnswerError) return error.status === 503;
  // What fetch throws while a body is read is a TypeError.
  return error instanceof TypeError || (error instanceof CommandError && error.code === 'node_unreachable');
}

/** Throws what the node said, as the port words it where it has words for it. */
async function refused(response: Response, path: string): Promise<never> {
  try {
    await expectStatus(response, [], `reading ${path}`);
  } catch (error) {
    if (error instanceof AnswerError && error.code === 'hold_not_found')
      throw new SkuaError(
        'hold_not_found',
        `The node no longer holds its files for this backup: it was restarted, or was unreachable for a minute. Repeat the command: it copies only what is missing.`,
        { path },
        error,
      );
    if (error instanceof AnswerError && error.status === 404)
      throw new SkuaError('file_not_found', `The node no longer has the file ${path}.`, { path }, error);
    throw error;
  }
  throw new Error('An answer that was not asked for was taken for one.');
}
