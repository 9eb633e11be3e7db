import type { RoutingLimits } from '../../core/ports/routing-sandbox.ts';
import type { EngineHost, WasmModule } from './engine.ts';
import { Guest } from './guest.ts';
import type { MemoryImage, Value } from './guest.ts';
import { recentThreadCpuMs, threadCpuMs } from './messages.ts';
import type { Run, RunResult } from './messages.ts';
import { cut, describeException } from './script-error.ts';

/** A script as it stands after its top level. */
interface Prepared {
  readonly image: MemoryImage;
  /** Null when the top level asked for the time or for chance: it is run anew in each call, which has its own. */
  readonly route: Value | null;
}

/** Thrown inside this file: the run is over, with this result. */
class Ended extends Error {
  readonly result: RunResult;
  constructor(result: RunResult) {
    super(result.kind);
    this.result = result;
  }
}

/**
 * Runs scripts in one engine, whose memory is put back after every run from the image of the connector's script. Of each
 * connector there is an image; the engine has one owner at a time.
 */
export class ScriptRunner {
  readonly #module: WasmModule;
  readonly #host: CallHost;
  readonly #limits: RoutingLimits;
  readonly #scripts = new Map<string, string>();
  readonly #prepared = new Map<string, Prepared>();
  #guest: Guest;
  /** What the engine's memory holds, untouched; null after a run. */
  #standing: MemoryImage | null = null;
  /** What to put back. */
  #lastImage: MemoryImage;

  constructor(module: WasmModule, host: CallHost, limits: RoutingLimits) {
    this.#module = module;
    this.#host = host;
    this.#limits = limits;
    this.#guest = new Guest(module, host, limits);
    this.#lastImage = this.#guest.base;
  }

  learn(connectorId: string, script: string): void {
    this.#scripts.set(connectorId, script);
    this.#prepared.delete(connectorId);
  }

  release(connectorId: string): void {
    this.#scripts.delete(connectorId);
    this.#prepared.delete(connectorId);
    if (this.#standing !== this.#guest.base) this.#standing = null;
    this.#lastImage = this.#guest.base;
  }

  /** The script of the connector was learnt before. Never throws. */
  run(connectorId: string, run: Run): RunResult {
    this.#host.begin(run.nowMs, run.seed);
    try {
      return run.kind === 'check' ? this.#check(connectorId) : this.#route(connectorId, run.requestJson);
    } catch (error) {
      if (error instanceof Ended) return error.result;
      // An exception of the host leaves the engine in the middle of something.
      this.#replaceGuest();
      return this.#faultResult(error);
    }
  }

  /** Brings the memory back to what the next run of the same connector starts from, while nobody waits. */
  tidy(): void {
    if (this.#standing === null) this.#put(this.#lastImage);
  }

  #check(connectorId: string): RunResult {
    this.#use(this.#guest.base);
    this.#routeOf(this.#scripts.get(connectorId)!);
    return this.#skipped();
  }

  #route(connectorId: string, requestJson: string): RunResult {
    const { image, route } = this.#prepared.get(connectorId) ?? this.#prepare(connectorId);
    this.#use(image);
    const func = route ?? this.#routeOf(this.#scripts.get(connectorId)!);
    const request = this.#done(this.#guest.parse(requestJson));
    return this.#resultOf(this.#done(this.#guest.call(func, request)));
  }

  #prepare(connectorId: string): Prepared {
    this.#use(this.#guest.base);
    const route = this.#routeOf(this.#scripts.get(connectorId)!);
    // A top level that needs much memory is run in each call as well: an image of it would be large.
    const mustRepeat = this.#host.hasAsked || this.#guest.hasGrown;
    const prepared = mustRepeat ? { image: this.#guest.base, route: null } : { image: this.#guest.takeImage(), route };
    this.#host.rewind();
    this.#prepared.set(connectorId, prepared);
    return prepared;
  }

  /** Runs the top level. */
  #routeOf(script: string): Value {
    this.#done(this.#guest.evaluate(script));
    const route = this.#guest.evaluate('route');
    if (this.#host.isTimedOut) throw this.#timedOut();
    if (this.#guest.isException(route) || !this.#guest.isFunction(route)) {
      throw this.#failed('The script does not define a function named route: write function route(request) { … } at its top level.');
    }
    return route;
  }

  /** Every property is read once, here, whatever getters and proxies make of it. */
  #resultOf(result: Value): RunResult {
    const guest = this.#guest;
    if (guest.isNullish(result)) return this.#skipped();
    if (guest.isPromise(result)) throw this.#failed('route returned a promise: it must return its result itself, so it cannot be async.');
    if (!guest.isObject(result) || guest.isFunction(result)) throw this.#failed('route must return an object with stream and schema, or null to skip the request.');
    const stream = this.#done(guest.get(result, 'stream'));
    if (guest.isNullish(stream)) return this.#skipped();
    const streamLength = this.#lengthOf(stream, 'stream');
    if (streamLength === 0) return this.#skipped();
    const schema = this.#done(guest.get(result, 'schema'));
    const schemaLength = guest.isNullish(schema) ? 0 : this.#lengthOf(schema, 'schema');
    const { outputLengthMax } = this.#limits;
    if (streamLength + schemaLength > outputLengthMax) {
      throw this.#failed(`stream and schema have ${streamLength + schemaLength} characters together; ${outputLengthMax} are allowed.`);
    }
    return { kind: 'routed', stream: this.#textOf(stream, 'stream'), schema: guest.isNullish(schema) ? null : this.#textOf(schema, 'schema'), cpuMs: this.#host.cpuMs };
  }

  #lengthOf(value: Value, name: string): number {
    if (!this.#guest.isString(value)) throw this.#failed(`${name} must be a text.`);
    return this.#guest.lengthOf(value);
  }

  #textOf(value: Value, name: string): string {
    const text = this.#guest.textOf(value);
    if (text === null) throw this.#failed(`${name} holds half of a surrogate pair, so that it is no Unicode text.`);
    return text;
  }

  /** The value, unless it stands for an exception. */
  #done(value: Value): Value {
    if (!this.#guest.isException(value)) return value;
    if (this.#host.isTimedOut) throw this.#timedOut();
    const reason = describeException(this.#guest);
    throw this.#host.isTimedOut ? this.#timedOut() : this.#failed(reason);
  }

  #skipped(): RunResult { return { kind: 'skipped', cpuMs: this.#host.cpuMs }; }
  #failed(reason: string): Ended { return new Ended({ kind: 'failed', reason: cut(reason), cpuMs: this.#host.cpuMs }); }
  #timedOut(): Ended { return new Ended(timedOut(this.#limits.timeoutMs)); }

  #faultResult(error: unknown): RunResult {
    if (this.#host.isTimedOut) return timedOut(this.#limits.timeoutMs);
    const reason = error instanceof RangeError ? 'The script needs more stack than a script may have: it calls itself too deeply, or nests its data too deeply.'
      : cut(`The script was ended because the sandbox could not go on: ${error instanceof Error ? error.message : String(error)}`);
    return { kind: 'failed', reason, cpuMs: this.#host.cpuMs };
  }

  /** The run that follows begins with this. */
  #use(image: MemoryImage): void {
    if (this.#standing !== image) this.#put(image);
    this.#standing = null;
    this.#lastImage = image;
  }

  #put(image: MemoryImage): void {
    if (this.#guest.isWornOut) this.#replaceGuest();
    this.#guest.putImage(image);
    this.#standing = image;
  }

  #replaceGuest(): void {
    this.#guest = new Guest(this.#module, this.#host, this.#limits, this.#guest);
    this.#standing = null;
  }
}

function timedOut(timeoutMs: number): Extract<RunResult, { kind: 'timed-out' }> {
  return { kind: 'timed-out', reason: `The script ran longer than the ${timeoutMs} ms that it may take.` };
}

/** Processor time is counted in slices of the scheduler: a shorter call is measured by the wall clock instead, in milliseconds. */
const SLICE_MS = 10;

/** The world as one call sees it: a time that stands still, chance that follows from the seed, and a limit of processor time. */
export class CallHost implements EngineHost {
  readonly #timeoutMs: number;
  #nowMs = 0;
  #seed = 0;
  #randomState = 0;
  #startedMs = 0;
  #startedCpuMs = 0;
  #nextLookMs = Infinity;
  /** The script was made to end because its time was over. */
  isTimedOut = false;
  /** The script has asked for the time or for a random number. */
  hasAsked = false;

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  begin(nowMs: number, seed: number): void {
    this.#nowMs = nowMs;
    this.#seed = seed;
    this.#startedCpuMs = recentThreadCpuMs();
    this.#startedMs = performance.now();
    this.#nextLookMs = this.#startedMs + this.#timeoutMs;
    this.isTimedOut = false;
    this.rewind();
  }

  /** Back to the first random number. The time used so far stays used. */
  rewind(): void {
    this.#randomState = this.#seed | 0;
    this.hasAsked = false;
  }

  /** Processor time since `begin`. */
  get cpuMs(): number {
    const wallMs = performance.now() - this.#startedMs;
    return wallMs < SLICE_MS ? wallMs : threadCpuMs() - this.#startedCpuMs;
  }

  nowMs(): number {
    this.hasAsked = true;
    return this.#nowMs;
  }

  /** 53 bits of two steps of the generator. */
  random(): number {
    this.hasAsked = true;
    return (this.#next32() * 2 ** 21 + (this.#next32() >>> 11)) / 2 ** 53;
  }

  /** Looks at the processor time only when as much wall time has gone by: a thread that had to wait for its turn is not late. */
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
