import { Intrinsics, JSException, QuickJS } from 'quickjs-wasi';
import type { JSValueHandle } from 'quickjs-wasi';
import { REASON_LENGTH_MAX } from '../../core/ports/routing-sandbox.ts';
import type { RoutingLimits } from '../../core/ports/routing-sandbox.ts';
import { recentThreadCpuMs, threadCpuMs } from './script-messages.ts';
import type { Run, RunResult, WasmModule } from './script-messages.ts';
import { adviceFor, cut, describeException, SCRIPT_NAME } from './script-error.ts';

/**
 * Parts of the language that a script gets. Not: weak references, the performance timer, exceptions of the DOM and
 * Base64.
 */
const INTRINSICS =
  Intrinsics.DATE |
  Intrinsics.EVAL |
  Intrinsics.REGEXP |
  Intrinsics.JSON |
  Intrinsics.PROXY |
  Intrinsics.MAP_SET |
  Intrinsics.TYPED_ARRAYS |
  Intrinsics.PROMISE |
  Intrinsics.BIG_INT;
/**
 * Removes memory that threads share, and the queue of jobs, which is never run here; replaces the engine's generator,
 * which is not seeded; and gives what a call is made with, whatever a script makes of the names later: `attempt` has
 * [whether it returned, what it returned or threw]. The text of the body is cut out of the request's only for a script
 * that reads it.
 */
const PREPARATION = `(random, BODY_AT) => {
  delete globalThis.SharedArrayBuffer;
  delete globalThis.queueMicrotask;
  Object.defineProperty(Math, 'random', { value: random, writable: true, configurable: true });
  const { parse } = JSON, { apply, defineProperty, getOwnPropertyDescriptor } = Reflect, { isWellFormed, slice } = String.prototype;
  return {
    attempt: (func, json, length) => {
      try {
        const request = parse(json);
        if (length > 0) defineProperty(request, 'text', { __proto__: null, configurable: true, get: () => apply(slice, json, [BODY_AT, BODY_AT + length]) });
        return [true, func(request)];
      } catch (error) {
        return [false, error];
      }
    },
    get: (object, name) => { try { return [true, object[name]]; } catch (error) { return [false, error]; } },
    isText: (text) => apply(isWellFormed, text, []),
    hasType: (object) => { try { return getOwnPropertyDescriptor(object, 'type') !== undefined; } catch { return false; } },
  };
}`;
/** Where the body begins in the text of a request. */
const BODY_AT = '{"body":'.length;
/** Garbage in cycles is collected when so many bytes have been allocated, which most calls never do. */
const GC_THRESHOLD_BYTES = 16 * 1024 * 1024;
/** What a call may need without its engine growing: several times what a webhook of 25 kB takes. */
const HEADROOM = ' '.repeat(128 * 1024);
/** Most that a script's stack may be limited to. */
const STACK_BYTES_MAX = 512 * 1024;
const NANOSECONDS_PER_MS = 1_000_000n;

/** Thrown inside this file: the run is over, with this result. */
class Ended extends Error {
  readonly result: RunResult;
  constructor(result: RunResult) {
    super(result.kind);
    this.result = result;
  }
}

/** An engine with its limits, what it was prepared with, and its memory as it was then. */
interface Engine {
  readonly vm: QuickJS;
  readonly attempt: JSValueHandle;
  readonly get: JSValueHandle;
  readonly isText: JSValueHandle;
  readonly hasType: JSValueHandle;
  readonly memory: Uint8Array;
}

/**
 * Runs calls in an engine whose memory is put back behind each of them: all that a script can change lies there, so
 * nothing of one call is there in the next. One that has grown, or that has thrown something, is used no more.
 */
export class ScriptRunner {
  readonly #module: WasmModule;
  readonly #host: CallHost;
  readonly #limits: RoutingLimits;
  readonly #scripts = new Map<string, string>();
  #engine: Engine | null = null;

  constructor(module: WasmModule, host: CallHost, limits: RoutingLimits) {
    this.#module = module;
    this.#host = host;
    this.#limits = limits;
  }

  learn(connectorId: string, script: string): void {
    this.#scripts.set(connectorId, script);
  }

  release(connectorId: string): void {
    this.#scripts.delete(connectorId);
  }

  /** Resolves when there is an engine for the next run. */
  async ready(): Promise<void> {
    this.#engine ??= await this.#make();
  }

  /** The script of the connector was learnt before, and `ready` has resolved since the last run. Never throws. */
  run(connectorId: string, run: Run): RunResult {
    const engine = this.#engine!;
    this.#host.begin(run.nowMs, run.seed);
    try {
      const route = this.#routeOf(engine, this.#scripts.get(connectorId)!);
      return run.kind === 'check'
        ? this.#skipped()
        : this.#resultOf(
            engine,
            this.#done(
              engine,
              engine.attempt,
              route,
              engine.vm.newString(run.requestJson),
              engine.vm.newNumber(run.bodyLength),
            ),
          );
    } catch (error) {
      if (error instanceof Ended) return error.result;
      this.#engine = null;
      return this.#faultResult(error);
    } finally {
      this.#host.end();
    }
  }

  /** Puts the memory back, while no call waits. */
  tidy(): void {
    if (this.#engine === null) return;
    const { vm, memory } = this.#engine;
    const { buffer } = vm._getMemory() as { readonly buffer: ArrayBuffer };
    if (buffer.byteLength === memory.length) new Uint8Array(buffer).set(memory);
    else this.#engine = null;
  }

  async #make(): Promise<Engine> {
    const { memoryBytesMax, stackBytesMax } = this.#limits;
    const host = this.#host;
    const vm = await QuickJS.create({
      wasm: this.#module,
      intrinsics: INTRINSICS,
      memoryLimit: memoryBytesMax,
      maxStackSize: Math.min(stackBytesMax, STACK_BYTES_MAX),
      timezoneOffset: 0,
      interruptHandler: () => host.isOver(),
      wasi: (memory: { readonly buffer: ArrayBuffer }) => ({
        clock_time_get: (_id: number, _precision: bigint, out: number) => {
          new DataView(memory.buffer).setBigUint64(out, BigInt(Math.trunc(host.nowMs)) * NANOSECONDS_PER_MS, true);
          return 0;
        },
        random_get: (out: number, length: number) => {
          new Uint8Array(memory.buffer, out, length).fill(0);
          return 0;
        },
      }),
    });
    vm.gcThreshold = Math.min(memoryBytesMax / 2, GC_THRESHOLD_BYTES);
    const prepared = vm.callFunction(
      vm.evalCode(PREPARATION),
      vm.undefined,
      vm.newFunction('random', () => vm.newNumber(host.random())),
      vm.newNumber(BODY_AT),
    );
    const { attempt, get, isText, hasType } = Object.fromEntries(
      ['attempt', 'get', 'isText', 'hasType'].map((name) => [name, prepared.getProp(name)]),
    ) as Record<'attempt' | 'get' | 'isText' | 'hasType', JSValueHandle>;
    vm.newString(HEADROOM).dispose();
    return { vm, attempt, get, isText, hasType, memory: vm.snapshot().memory };
  }

  /** Runs the top level. */
  #routeOf({ vm }: Engine, script: string): JSValueHandle {
    try {
      vm.evalCode(script, SCRIPT_NAME);
    } catch (error) {
      throw this.#advised(this.#thrown(error), script);
    }
    let route: JSValueHandle | null = null;
    try {
      route = vm.evalCode('route', SCRIPT_NAME);
    } catch (error) {
      if (!(error instanceof JSException)) throw error;
      this.#engine = null;
    }
    if (this.#host.isTimedOut) throw this.#timedOut();
    if (route?.isFunction !== true)
      throw this.#failed(
        'The script does not define a function named route: write function route(request) { … } at its top level.',
      );
    return route;
  }

  /** Every property is read once, here, whatever getters and proxies make of it. */
  #resultOf(engine: Engine, result: JSValueHandle): RunResult {
    if (isNullish(result)) return this.#skipped();
    if (result.isPromise)
      throw this.#failed('route returned a promise: it must return its result itself, so it cannot be async.');
    if (!result.isObject || result.isFunction)
      throw this.#failed('route must return an object with stream and schema, or null to skip the request.');
    const stream = this.#done(engine, engine.get, result, engine.vm.newString('stream'));
    if (isNullish(stream)) return this.#skipped();
    const streamLength = this.#lengthOf(stream, 'stream');
    if (streamLength === 0) return this.#skipped();
    const schema = this.#done(engine, engine.get, result, engine.vm.newString('schema'));
    const schemaLength = isNullish(schema) ? 0 : this.#lengthOf(schema, 'schema');
    const { outputLengthMax } = this.#limits;
    if (streamLength + schemaLength > outputLengthMax) {
      throw this.#failed(
        `stream and schema have ${streamLength + schemaLength} characters together; the limit is ${outputLengthMax}.`,
      );
    }
    const routed = {
      kind: 'routed',
      stream: this.#textOf(engine, stream, 'stream'),
      schema: isNullish(schema) ? null : this.#textOf(engine, schema, 'schema'),
      cpuMs: this.#host.cpuMs,
    } as const;
    return routed.schema === null && this.#hasType(engine, result) ? { ...routed, hasType: true } : routed;
  }

  /** A result that is a proxy may run its script for this. */
  #hasType({ vm, hasType }: Engine, result: JSValueHandle): boolean {
    try {
      return vm.callFunction(hasType, vm.undefined, result).toBoolean();
    } catch (error) {
      throw this.#thrown(error);
    }
  }

  #lengthOf(value: JSValueHandle, name: string): number {
    if (!value.isString) throw this.#failed(`${name} must be a string.`);
    return value.length;
  }

  #textOf({ vm, isText }: Engine, text: JSValueHandle, name: string): string {
    if (!vm.callFunction(isText, vm.undefined, text).toBoolean())
      throw this.#failed(`${name} has a lone surrogate, so it is not valid Unicode.`);
    return text.toString();
  }

  /** What one of the prepared functions has brought, unless that is an exception. */
  #done({ vm }: Engine, how: JSValueHandle, ...given: JSValueHandle[]): JSValueHandle {
    let pair: JSValueHandle;
    try {
      pair = vm.callFunction(how, vm.undefined, ...given);
    } catch (error) {
      throw this.#thrown(error);
    }
    const value = pair.getProp('1');
    if (pair.getProp('0').toBoolean()) return value;
    throw this.#describe(value);
  }

  /** How a run ends of which the engine says that it threw. */
  #thrown(error: unknown): unknown {
    if (!(error instanceof JSException)) return error;
    // The engine's class keeps what it has thrown for as long as there is the engine.
    this.#engine = null;
    return this.#describe(error.handle);
  }

  #describe(thrown: JSValueHandle): Ended {
    if (this.#host.isTimedOut) return this.#timedOut();
    const reason = describeException(thrown);
    return this.#host.isTimedOut ? this.#timedOut() : this.#failed(reason);
  }

  /** With what to write instead, where that can be guessed. */
  #advised(thrown: unknown, script: string): unknown {
    if (!(thrown instanceof Ended) || thrown.result.kind !== 'failed') return thrown;
    const { reason } = thrown.result;
    const advice = adviceFor(reason, script);
    return advice === null ? thrown : this.#failed(`${cut(reason, REASON_LENGTH_MAX - advice.length - 2)}. ${advice}`);
  }

  #skipped(): RunResult {
    return { kind: 'skipped', cpuMs: this.#host.cpuMs };
  }
  #failed(reason: string): Ended {
    return new Ended({ kind: 'failed', reason: cut(reason), cpuMs: this.#host.cpuMs });
  }
  #timedOut(): Ended {
    return new Ended(timedOut(this.#limits.timeoutMs));
  }

  #faultResult(error: unknown): RunResult {
    if (this.#host.isTimedOut) return timedOut(this.#limits.timeoutMs);
    const reason =
      error instanceof RangeError
        ? 'The script ran out of stack: it recurses too deeply, or nests its data too deeply.'
        : cut(
            `The script was stopped because the sandbox failed: ${error instanceof Error ? error.message : String(error)}`,
          );
    return { kind: 'failed', reason, cpuMs: this.#host.cpuMs };
  }
}

function isNullish(value: JSValueHandle): boolean {
  return value.isUndefined || value.isNull;
}

function timedOut(timeoutMs: number): Extract<RunResult, { kind: 'timed-out' }> {
  return { kind: 'timed-out', reason: `The script ran longer than the ${timeoutMs} ms that it may take.` };
}

/**
 * Processor time is counted in slices of the scheduler: a shorter call is measured by the wall clock instead, in
 * milliseconds.
 */
const SLICE_MS = 10;

/**
 * The world as one call sees it: a time that stands still, chance that follows from the seed, and a limit of processor
 * time.
 */
export class CallHost {
  readonly #timeoutMs: number;
  /** Of the call, in UTC milliseconds. */
  nowMs = 0;
  #randomState = 0;
  #startedMs = 0;
  #startedCpuMs = 0;
  #nextLookMs = Infinity;
  /** The script was made to end because its time was over. */
  isTimedOut = false;

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  begin(nowMs: number, seed: number): void {
    this.nowMs = nowMs;
    this.#randomState = seed | 0;
    this.#startedCpuMs = recentThreadCpuMs();
    this.#startedMs = performance.now();
    this.#nextLookMs = this.#startedMs + this.#timeoutMs;
    this.isTimedOut = false;
  }

  /** Until the next one begins nothing is over: what is made ready for it has no limit. */
  end(): void {
    this.isTimedOut = false;
    this.#nextLookMs = Infinity;
  }

  /** Processor time since `begin`. */
  get cpuMs(): number {
    const wallMs = performance.now() - this.#startedMs;
    return wallMs < SLICE_MS ? wallMs : threadCpuMs() - this.#startedCpuMs;
  }

  /** 53 bits of two steps of the generator. */
  random(): number {
    return (this.#next32() * 2 ** 21 + (this.#next32() >>> 11)) / 2 ** 53;
  }

  /**
   * Looks at the processor time only when as much wall time has gone by: a thread that had to wait for its turn is not
   * late.
   */
  isOver(): boolean {
    if (this.isTimedOut) return true;
    const now = performance.now();
    if (now < this.#nextLookMs) return false;
    const left = this.#timeoutMs - this.cpuMs;
    this.isTimedOut = left <= 0;
    this.#nextLookMs = now + Math.max(1, left);
    return this.isTimedOut;
  }

  /** splitmix32 */
  #next32(): number {
    this.#randomState = (this.#randomState + 0x9e3779b9) | 0;
    let z = this.#randomState;
    z = Math.imul(z ^ (z >>> 16), 0x21f0aaad);
    z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
    return (z ^ (z >>> 15)) >>> 0;
  }
}
