import { SkuaError } from '../../core/base/errors.ts';
import type { Checkpoint, Position, RecordedEvent } from '../event-store/api.ts';
import type { BatchLimits, EventSource, Projection, ProjectionOptions, ProjectionStatus } from './api.ts';
import { type AnyHandlers, handleBatch, HandlerFailure, isPromise } from './batch.ts';
import { Intake, type Taken } from './intake.ts';
import { parsePlace, type Place, rowText } from './position-text.ts';
import type { World } from './world.ts';

const BATCH: BatchLimits = { events: 500, bytes: 4_194_304, milliseconds: 1_000 };
const BATCH_EVENTS_MAX = 10_000;
const NAME_LENGTH_MAX = 200;
/** A query names no more types. */
const TYPES_MAX = 64;
/** While no event comes, it is asked so often whether the log still is the one that was read. */
const IDLE_CHECK_MS = 60_000;
/** Another instance that has committed nothing for so long is taken for gone; a wrong guess does no harm. */
const STAND_BY_MS = 1_000;
/** So long a call that is to end waits for another instance. */
const OVERTAKEN_WAIT_MS = 50;
/** Of the time until the deadline, what is left to commit in, and at most so long. */
const COMMIT_SHARE = 0.1;
const COMMIT_MS_MAX = 1_000;

/** What one call is to do. */
interface Goal {
  readonly signal: AbortSignal | undefined;
  /** It ends when all that there was has been handled. */
  readonly endsCaughtUp: boolean;
  /** No handler is begun behind it. */
  readonly untilMs: number;
}

/** The text of the row that was read or written last, and what it says. */
interface Stored {
  readonly text: string;
  readonly place: Place;
}

export class Projecting<Tx, Event extends RecordedEvent> implements Projection {
  readonly name: string;
  readonly #source: EventSource<Event>;
  readonly #options: ProjectionOptions<Tx, Event>;
  readonly #handlers: AnyHandlers<Tx>;
  readonly #limits: BatchLimits;
  readonly #world: World;
  #state: ProjectionStatus['state'] = 'stopped';
  #stored: Stored | null = null;
  /** Of the log, when it was looked at last; null before. */
  #end: number | null = null;
  #isCaughtUp = false;
  #lastEventAt: Date | null = null;
  #events = 0;

  constructor(source: EventSource<Event>, options: ProjectionOptions<Tx, Event>, world: World) {
    this.name = options.name;
    this.#source = source;
    this.#options = options;
    const { on, onOther, onErased } = options;
    this.#handlers = { on, onOther, onErased } as AnyHandlers<Tx>;
    this.#limits = { ...BATCH, events: options.store?.batchEvents ?? BATCH.events, ...options.batch };
    this.#world = world;
    checkOptions(options, this.#limits);
  }

  status(): ProjectionStatus {
    const checkpoint = this.#stored?.place.checkpoint ?? null;
    const behind = this.#end === null ? null : Math.max(0, this.#end - (checkpoint?.position.commit ?? 0));
    return {
      name: this.name,
      state: this.#state,
      checkpoint,
      isCaughtUp: this.#isCaughtUp,
      behindBytes: this.#isCaughtUp ? 0 : behind,
      lastEventAt: this.#lastEventAt,
      events: this.#events,
    };
  }

  async run({ signal }: { readonly signal?: AbortSignal } = {}): Promise<void> {
    await this.#reach({ signal, endsCaughtUp: false, untilMs: Number.POSITIVE_INFINITY });
  }

  async catchUp({
    deadline,
    signal,
  }: { readonly deadline?: Date | number; readonly signal?: AbortSignal } = {}): Promise<ProjectionStatus> {
    await this.#reach({ signal, endsCaughtUp: true, untilMs: this.#untilMs(deadline) });
    return this.status();
  }

  #untilMs(deadline: Date | number | undefined): number {
    if (deadline === undefined) return Number.POSITIVE_INFINITY;
    const atMs = Number(deadline);
    if (Number.isNaN(atMs)) throw badOption('deadline must be a Date, or milliseconds since 1970', 'deadline');
    return atMs - Math.min(COMMIT_MS_MAX, COMMIT_SHARE * Math.max(0, atMs - this.#world.nowMs()));
  }

  async #reach(goal: Goal): Promise<void> {
    if (this.#state !== 'stopped')
      throw new SkuaError(
        'projection_running',
        `The projection ${this.name} is at work already: wait until the call has ended, or stop it with its signal.`,
      );
    this.#state = 'catching-up';
    this.#isCaughtUp = false;
    try {
      while (!this.#isOver(goal)) {
        const stored = await this.#begin();
        if ((await this.#follow(stored, goal)) === 'done') return;
        await this.#standBy(goal);
      }
    } finally {
      this.#state = 'stopped';
    }
  }

  #isOver({ signal, untilMs }: Goal): boolean {
    return signal?.aborted === true || this.#world.nowMs() >= untilMs;
  }

  /** What the row says, which is made where there is none; checked against the log. */
  async #begin(): Promise<Stored> {
    const { store, init } = this.#options;
    let text = await store.load(this.name);
    while (text === null) {
      const first = rowText({ checkpoint: await this.#first() });
      const isFirst = await store.commit(this.name, null, (tx) => {
        const made = init?.(tx);
        return isPromise(made) ? Promise.resolve(made).then(() => first) : first;
      });
      text = isFirst ? first : await store.load(this.name);
    }
    const place = parsePlace(this.name, text);
    await this.#check(place.checkpoint);
    return (this.#stored = { text, place });
  }

  /** Where it begins. */
  async #first(): Promise<Checkpoint | null> {
    const { after = 'start' } = this.#options;
    if (after === 'start') return null;
    return this.#checkpoint(after === 'end' ? {} : { position: after });
  }

  /** Throws `checkpoint_unknown` where the log is not the one that the model was made of. */
  async #check(after: Checkpoint | null): Promise<void> {
    if (after !== null) await this.#checkpoint({ after });
  }

  async #checkpoint(asked: {
    readonly position?: Position;
    readonly id?: string;
    readonly after?: Checkpoint;
  }): Promise<Checkpoint> {
    try {
      const { checkpoint, end } = await this.#source.checkpoint(asked);
      this.#end = end;
      return checkpoint!;
    } catch (error) {
      const { code, data, message } = error as Partial<SkuaError>;
      if (code !== 'checkpoint_unknown') throw error;
      throw new SkuaError(
        'checkpoint_unknown',
        `The projection ${this.name} has stopped, so that no event is left out in silence. ${message} Give it another name for that.`,
        data as { readonly position: Position; readonly why: string },
        error,
      );
    }
  }

  /** Handles batch after batch, until the goal is reached or another instance was faster. */
  async #follow(from: Stored, goal: Goal): Promise<'done' | 'overtaken'> {
    const intake = new Intake(this.#source, this.#subscription(from.place), this.#limits, this.#world);
    this.#state = 'catching-up';
    let stored = from;
    try {
      while (!this.#isOver(goal)) {
        const taken = await intake.take(Math.min(IDLE_CHECK_MS, goal.untilMs - this.#world.nowMs()), goal.signal);
        if (taken.events.length > 0 || taken.passed !== null) {
          const next = await this.#commit(stored, taken, goal, intake);
          if (next === null) return 'overtaken';
          stored = next;
        } else if (!goal.endsCaughtUp && !this.#isOver(goal) && intake.isEmpty && this.#isCaughtUp)
          await this.#check(stored.place.checkpoint);
        this.#isCaughtUp = intake.hasCaughtUp && intake.isEmpty;
        if (intake.hasCaughtUp) this.#state = 'live';
        if (goal.endsCaughtUp && this.#isCaughtUp) return 'done';
      }
      return 'done';
    } finally {
      await intake.close();
    }
  }

  #subscription({ checkpoint, version }: Place): Parameters<EventSource<Event>['subscribe']>[0] {
    const { filter = {}, on, onOther } = this.#options;
    if (filter.stream !== undefined) return { ...filter, after: version ?? 'start' };
    const types = filter.items === undefined && onOther === undefined ? Object.keys(on) : [];
    const isNarrow = types.length > 0 && types.length <= TYPES_MAX;
    return { ...(isNarrow && { types }), ...filter, after: checkpoint?.position ?? 'start' };
  }

  /** Commits a batch, or its part up to a limit or a failure; null where another instance was faster. */
  async #commit(stored: Stored, taken: Taken<Event>, goal: Goal, intake: Intake<Event>): Promise<Stored | null> {
    const { events } = taken;
    try {
      const done = await this.#handle(stored, taken, goal);
      if (done !== null && done.handled < events.length) intake.putBack(events.slice(done.handled));
      return done;
    } catch (error) {
      if (!(error instanceof HandlerFailure)) throw error;
      return this.#keepBefore(error, stored, events, goal);
    }
  }

  /**
   * Where all of the batch was rolled back, what came before the event that failed is done again, as far as there is
   * time. Throws what is told of the first event that failed; null where another instance was faster.
   */
  async #keepBefore(
    { handled, told }: HandlerFailure,
    stored: Stored,
    events: readonly Event[],
    goal: Goal,
  ): Promise<null> {
    const isDone = this.#options.store.rollsBack === false;
    for (let left = events.slice(0, handled); left.length > 0;) {
      try {
        const done = await this.#handle(stored, { events: left, passed: null }, goal, isDone);
        if (done === null) return null;
        if (done.handled === 0) break;
        stored = done;
        left = left.slice(done.handled);
      } catch (error) {
        if (!(error instanceof HandlerFailure)) throw error;
        told = error.told;
        left = left.slice(0, error.handled);
      }
    }
    throw told;
  }

  async #handle(
    stored: Stored,
    { events, passed }: Taken<Event>,
    goal: Goal,
    isDone = false,
  ): Promise<(Stored & { readonly handled: number }) | null> {
    const { place } = stored;
    const world = this.#world;
    // What most batches come to is asked for before their transaction begins.
    const whole = await this.#placeBehind(place, events, events.length, passed);
    let next: Stored & { readonly handled: number } = { ...whole, handled: events.length };
    const behind = (handled: number): string | Promise<string> => {
      if (handled === events.length) return next.text;
      if (handled === 0) return (next = { ...stored, handled }).text;
      return this.#placeBehind(place, events, handled, null).then((part) => (next = { ...part, handled }).text);
    };
    const isCommitted = await this.#options.store.commit(this.name, stored.text, (tx) => {
      // The database may have kept it waiting.
      const lateMs = world.nowMs() + this.#limits.milliseconds;
      const work = {
        projection: this.name,
        handlers: this.#handlers,
        events,
        isLate: (count: number) => this.#isOver(goal) || (count > 0 && world.nowMs() >= lateMs),
      };
      const handled = handleBatch(work, tx, isDone ? events.length : 0);
      return isPromise(handled) ? handled.then(behind) : behind(handled);
    });
    if (!isCommitted) return null;
    this.#stored = next;
    this.#events += next.handled;
    this.#lastEventAt = events[next.handled - 1]?.createdAt ?? this.#lastEventAt;
    return next;
  }

  async #placeBehind(
    { checkpoint, version }: Place,
    events: readonly Event[],
    count: number,
    passed: Position | null,
  ): Promise<Stored> {
    const last = events[count - 1];
    const at = passed === null ? (last?.link ?? last) : undefined;
    const next = await this.#checkpoint({
      position: passed ?? at!.position,
      ...(at !== undefined && at === last && { id: last.id }),
      ...(checkpoint !== null && { after: checkpoint }),
    });
    const seen = (last?.link ?? last)?.version ?? version;
    const isOne = this.#options.filter?.stream !== undefined && seen !== undefined;
    const place: Place = { checkpoint: next, ...(isOne && { version: seen }) };
    return { text: rowText(place), place };
  }

  /** Another instance is at work: it is left alone as long as it goes on. */
  async #standBy(goal: Goal): Promise<void> {
    this.#state = 'standing-by';
    this.#isCaughtUp = false;
    const signal = goal.signal ?? new AbortController().signal;
    for (let seen = await this.#options.store.load(this.name); !this.#isOver(goal);) {
      await this.#world.wait(goal.endsCaughtUp ? OVERTAKEN_WAIT_MS : STAND_BY_MS, signal);
      const now = await this.#options.store.load(this.name);
      if (goal.endsCaughtUp || now === seen) return;
      seen = now;
    }
  }
}

function checkOptions<Tx, Event extends RecordedEvent>(
  { name, on, store, after = 'start', filter }: ProjectionOptions<Tx, Event>,
  { events, bytes, milliseconds }: BatchLimits,
): void {
  if (typeof name !== 'string' || name === '' || name.length > NAME_LENGTH_MAX)
    throw badOption(`name must be a text of 1 to ${NAME_LENGTH_MAX} characters`, 'name');
  if (
    typeof on !== 'object' ||
    on === null ||
    Object.values(on).some((one) => one !== undefined && typeof one !== 'function')
  )
    throw badOption('on must be an object with a function for each type of event', 'on');
  if (after !== 'start' && filter?.stream !== undefined)
    throw badOption('after can be start only, where one stream is read', 'after');
  if (after !== 'start' && after !== 'end' && typeof after?.commit !== 'number')
    throw badOption('after must be start, end, or the position of an event', 'after');
  if (typeof store?.load !== 'function' || typeof store.commit !== 'function')
    throw badOption('store must be a model: memory(), sqlite(), postgres(), or one of your own', 'store');
  if (!Number.isInteger(events) || events < 1 || events > BATCH_EVENTS_MAX)
    throw badOption(`batch.events must be a whole number from 1 to ${BATCH_EVENTS_MAX}`, 'batch.events');
  if (!(bytes >= 1) || !(milliseconds >= 1))
    throw badOption('batch.bytes and batch.milliseconds must be 1 or more', 'batch');
}

function badOption(what: string, option: string): SkuaError {
  return new SkuaError('bad_option', `The projection can't be made: ${what}.`, { option });
}
