import { channel } from 'node:diagnostics_channel';
import type { EventEmitter } from 'node:events';
import { IncomingMessage, ServerResponse } from 'node:http';
import { constants } from 'node:http2';
import type { ServerHttp2Session, ServerHttp2Stream } from 'node:http2';
import type { Server, Socket } from 'node:net';
import type { Clock } from '../../core/ports/clock.ts';
import type { Log } from '../../core/ports/log.ts';
import type { Meter } from '../../core/ports/meter.ts';

/** What ends when something fails that runs for it: a stream of HTTP/2, else a connection. */
export type Owner = Socket | ServerHttp2Stream;

/**
 * What guards have caught is published on this channel of `node:diagnostics_channel`, as `{ error }`: the tests listen,
 * and fail.
 */
export const CAUGHT_CHANNEL = 'skua.caught';
const caughtChannel = channel(CAUGHT_CHANNEL);

/**
 * Lines of the log about what was caught, in each window of so many milliseconds: a client that finds a way to cause
 * one can cause many.
 */
const LINES_MAX = 20;
const WINDOW_MS = 60_000;

export const CAUGHT_METRIC = 'eventstore_http_owners_failed_total';

export interface GuardParts {
  readonly log: Log;
  readonly meter: Meter;
  readonly clock: Pick<Clock, 'monotonicMs'>;
}

/**
 * Everything that comes from outside runs in here: what it throws, or rejects with, ends the stream or connection that
 * it ran for, and never the process.
 *
 * Each connection and stream is *owned* before any other code hears of it: for its whole life it has a listener for
 * errors, without which one would end the process, and what its listeners throw is caught, of any listener. What runs
 * for it outside of its events (timers, callbacks, promises that are not awaited) goes through `run`.
 */
export class Guard {
  readonly #parts: GuardParts;
  #windowMs = Number.NEGATIVE_INFINITY;
  #lines = 0;
  #linesLeftOut = 0;

  constructor(parts: GuardParts) {
    this.#parts = parts;
  }

  /**
   * Owns the connections of a server from their first moment, and guards what the server tells its listeners of them.
   */
  server(server: Server): void {
    const emit = server.emit as Emit;
    server.emit = (event: string, a?: unknown, b?: unknown, c?: unknown): boolean => {
      if (event === 'connection' || event === 'secureConnection') this.#own(a as Socket, a as Socket);
      try {
        return emit.call(server, event, a, b, c);
      } catch (error) {
        const owner = ownerAmong(a, b);
        // An error that belongs to no connection is for the listeners of the process.
        if (owner === null) throw error;
        this.caught(owner, error);
        return true;
      }
    };
  }

  /** Owns the streams of a connection that speaks HTTP/2 in the same way. */
  session(session: ServerHttp2Session, socket: Socket): void {
    const emit = session.emit as Emit;
    session.emit = (event: string, a?: unknown, b?: unknown, c?: unknown, d?: unknown): boolean => {
      const owner = event === 'stream' ? (a as ServerHttp2Stream) : socket;
      if (event === 'stream') this.#own(a as ServerHttp2Stream, owner);
      try {
        return emit.call(session, event, a, b, c, d);
      } catch (error) {
        this.caught(owner, error);
        return true;
      }
    };
  }

  #own(emitter: Owner, owner: Owner): void {
    emitter.on('error', ignore);
    const emit = emitter.emit as Emit;
    (emitter as EventEmitter).emit = (event: string, a?: unknown, b?: unknown, c?: unknown): boolean => {
      try {
        return emit.call(emitter, event, a, b, c);
      } catch (error) {
        this.caught(owner, error);
        return true;
      }
    };
  }

  /** Runs work that is not waited for. */
  run(owner: Owner, work: () => unknown): void {
    try {
      const working = work();
      if (working instanceof Promise) working.then(undefined, (error: unknown) => this.caught(owner, error));
    } catch (error) {
      this.caught(owner, error);
    }
  }

  /** Something failed that ran for this one, which ends. */
  caught(owner: Owner, error: unknown): void {
    const isStream = 'rstCode' in owner;
    this.#parts.meter.count(CAUGHT_METRIC, 1, { owner: isStream ? 'stream' : 'connection' });
    this.#note(isStream ? owner.session?.socket?.remoteAddress : owner.remoteAddress, error);
    if (isStream) owner.close(constants.NGHTTP2_INTERNAL_ERROR);
    else owner.destroy();
    if (caughtChannel.hasSubscribers) caughtChannel.publish({ error });
  }

  #note(address: string | undefined, error: unknown): void {
    const { log, clock } = this.#parts;
    const nowMs = clock.monotonicMs();
    if (nowMs - this.#windowMs >= WINDOW_MS) {
      this.#windowMs = nowMs;
      this.#lines = 0;
    }
    if (this.#lines++ >= LINES_MAX) this.#linesLeftOut++;
    else {
      log.error('a handler of a connection failed; the connection was closed', {
        address,
        error,
        ...(this.#linesLeftOut > 0 && { linesLeftOut: this.#linesLeftOut }),
      });
      this.#linesLeftOut = 0;
    }
  }
}

/** Classes for the messages of a server of HTTP/1.1, whose listeners are guarded as those of their connection. */
export function guardedMessages(guard: Guard): {
  readonly IncomingMessage: typeof IncomingMessage;
  readonly ServerResponse: typeof ServerResponse;
} {
  return {
    IncomingMessage: class extends IncomingMessage {
      override emit(event: string, a?: unknown, b?: unknown): boolean {
        try {
          return super.emit(event, a, b);
        } catch (error) {
          guard.caught(this.socket, error);
          return true;
        }
      }
    },
    ServerResponse: class<Request extends IncomingMessage> extends ServerResponse<Request> {
      override emit(event: string, a?: unknown, b?: unknown): boolean {
        try {
          return super.emit(event, a, b);
        } catch (error) {
          guard.caught(this.req.socket, error);
          return true;
        }
      }
    },
  };
}

type Emit = (event: string, ...args: unknown[]) => boolean;

/**
 * The connection that an event of a server is about: it stands first, as the one that a message belongs to, or behind
 * an error.
 */
function ownerAmong(...args: readonly unknown[]): Socket | null {
  for (const arg of args) {
    if (arg instanceof IncomingMessage) return arg.socket;
    if (isSocket(arg)) return arg;
  }
  return null;
}

function isSocket(value: unknown): value is Socket {
  return typeof value === 'object' && value !== null && 'remoteAddress' in value;
}

function ignore(): void {}
