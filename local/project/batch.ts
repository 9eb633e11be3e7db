import { SkuaError } from '../../core/base/errors.ts';
import type { RecordedEvent } from '../event-store/api.ts';
import type { Handler } from './api.ts';

/** The handlers of a projection, whatever the types of its events are. */
export interface AnyHandlers<Tx> {
  readonly on: Readonly<Record<string, Handler<Tx, RecordedEvent> | undefined>>;
  readonly onOther: Handler<Tx, RecordedEvent> | undefined;
  readonly onErased: Handler<Tx, RecordedEvent<undefined>> | undefined;
}

/** A handler threw: how many events before it had been handled, and what is told of it. */
export class HandlerFailure extends Error {
  readonly handled: number;
  readonly told: SkuaError;

  constructor(handled: number, told: SkuaError) {
    super(told.message, { cause: told });
    this.handled = handled;
    this.told = told;
  }
}

interface BatchWork<Tx> {
  readonly projection: string;
  readonly handlers: AnyHandlers<Tx>;
  readonly events: readonly RecordedEvent[];
  /** Asked before each event, with how many were handled: it is not begun. */
  isLate(handled: number): boolean;
}

/**
 * Has the events handled in order, and gives how many of them were: all, or those up to the limit of time. At once
 * where no handler has anything to wait for, so that nothing comes between on a connection that others share. Throws,
 * or rejects with, a `HandlerFailure`.
 */
export function handleBatch<Tx>(work: BatchWork<Tx>, tx: Tx, from = 0): number | Promise<number> {
  const { events, isLate } = work;
  for (let i = from; i < events.length; i++) {
    if (isLate(i)) return i;
    const handling = handleOne(work, tx, i);
    if (handling !== undefined) return handling.then(() => handleBatch(work, tx, i + 1));
  }
  return events.length;
}

function handleOne<Tx>(
  { projection, handlers, events }: BatchWork<Tx>,
  tx: Tx,
  i: number,
): Promise<unknown> | undefined {
  const event = events[i]!;
  const fail = (error: unknown): never => {
    throw new HandlerFailure(i, failed(projection, event, error));
  };
  try {
    const done = handlerOf(handlers, event)?.(tx, event as RecordedEvent<undefined>);
    return isPromise(done) ? Promise.resolve(done).catch(fail) : undefined;
  } catch (error) {
    return fail(error);
  }
}

function handlerOf<Tx>(
  { on, onOther, onErased }: AnyHandlers<Tx>,
  { isRedacted, type }: RecordedEvent,
): AnyHandlers<Tx>['onErased'] {
  if (isRedacted) return onErased;
  return (Object.hasOwn(on, type) ? on[type] : undefined) ?? onOther;
}

/** Also what only can be waited for, as a query of a library that begins then: it has no other method for certain. */
export function isPromise<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof (value as PromiseLike<T> | undefined)?.then === 'function';
}

function failed(projection: string, event: RecordedEvent, error: unknown): SkuaError {
  const { stream, version, type, id, position } = event;
  const why = error instanceof Error ? error.message : String(error);
  return new SkuaError(
    'projection_failed',
    `The projection ${projection} stopped at event ${version} (${type}) of ${stream}, at position ${position.commit}/${position.prepare}: ${why} Nothing of that event was kept. Correct the handler, or what the event needs, and run the projection again: it goes on where it is.`,
    { projection, stream, version, type, id, position },
    error,
  );
}
