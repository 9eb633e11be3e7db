import { isUtf8 } from 'node:buffer';
import type { RoutingLimits } from '../../core/ports/routing-sandbox.ts';
import { startEngine } from './engine.ts';
import type { Engine, EngineHost, WasmMemory, WasmModule } from './engine.ts';

/**
 * Parts of the language that a script gets (flags of the engine): Date, eval, RegExp, JSON, Proxy, Map and Set, typed
 * arrays, Promise, BigInt. Not: weak references, the performance timer, exceptions of the DOM and Base64.
 */
const INTRINSICS = 0b1_1111_1111;
/** Removed as well: memory that threads share, and the queue of jobs, which is never run here. */
const PREPARATION = 'delete globalThis.SharedArrayBuffer; delete globalThis.queueMicrotask;';
/** The name of a script in the places of its errors. */
const SCRIPT_NAME = 'script';
/** Memory in bytes that a call may need without its engine growing: several times what a webhook of 25 kB takes. All of it is zeroed after each call. */
const HEADROOM_BYTES = 128 * 1024;
/** What an engine may have grown by before it is replaced: the memory of WebAssembly never shrinks. */
const GROWN_BYTES_MAX = 16 * 1024 * 1024;
/** Garbage in cycles is collected when so many bytes have been allocated, which most calls never do. */
const GC_THRESHOLD_BYTES = 16 * 1024 * 1024;
/** Most that a script's stack may be limited to. */
const STACK_BYTES_MAX = 512 * 1024;
/** What the C stack has beyond that limit, for frames that do not look at it, and for the handling of its being reached. Beyond that is the end of memory, which ends the run. */
const STACK_SPARE_BYTES = 256 * 1024;
/** Names of properties that are read in each run. */
const NAMES: readonly string[] = ['stream', 'schema', 'length'];
const WASM_PAGE_BYTES = 65_536;
/** Longest text in bytes that is read out of an engine. */
const TEXT_BYTES_MAX = 1024 * 1024;

/** A value inside the engine. */
export type Value = number & { readonly __value: unique symbol };

/** Something that must never happen: the engine's state is unknown and it must not be used again. */
class EngineFault extends Error {
  override name = 'EngineFault';
}

/** An engine with its limits, and the few operations that routing needs. Values are never freed: the image is put back instead. */
export class Guest {
  readonly #engine: Engine;
  /** What images cover. */
  readonly #imageBytes: number;
  /** Size of the memory when the last image was put. */
  #bytes: number;
  /** What was put last. */
  #put: MemoryImage | null = null;
  /** Between the C stack and what else there is in memory: zeros, which no code of the engine's writes. */
  readonly #unused: Span;
  /** As prepared, before any script. */
  readonly base: MemoryImage;
  /** The language's own `JSON.parse`, whatever a script makes of the name. */
  readonly #parse: Value;
  readonly #undefined: Value;
  /** Where names stand in every image that each run needs. */
  readonly #names: ReadonlyMap<string, number>;

  /** With another guest before it, it begins as that one did, which costs a copy instead of a start. */
  constructor(module: WasmModule, host: EngineHost, limits: RoutingLimits, before?: Guest) {
    this.#engine = startEngine(module, host);
    this.#unused = this.#shortenStack(limits);
    if (before === undefined) {
      this.#start(limits);
      this.#undefined = this.#known(this.#engine.qjs_get_undefined());
      this.#evaluate(PREPARATION);
      this.#replaceRandom();
      this.#parse = this.#evaluate('JSON.parse');
      this.#names = new Map(NAMES.map((name) => [name, this.#utf8(name).at]));
      this.#engine.wasm_free(this.#allocate(HEADROOM_BYTES));
      this.#imageBytes = this.#bytes = this.#engine.memory.buffer.byteLength;
      this.base = this.takeImage();
    } else {
      const { memory } = this.#engine;
      this.#imageBytes = this.#bytes = before.#imageBytes;
      memory.grow((this.#bytes - memory.buffer.byteLength) / WASM_PAGE_BYTES);
      before.base.put(memory);
      this.base = before.base;
      this.#undefined = before.#undefined;
      this.#parse = before.#parse;
      this.#names = before.#names;
    }
  }

  /** Of the state now, unless the memory has grown since an image was put. The C stack, which is empty between two calls, comes along as zeros. */
  takeImage(): MemoryImage {
    const { memory, __stack_pointer: stackPointer } = this.#engine;
    new Uint8Array(memory.buffer).fill(0, 0, stackPointer.value);
    return MemoryImage.take(memory, this.#imageBytes);
  }

  /**
   * An image of this guest or of one that began as it did. Not after a fault. Where the same image was put before, it leaves out what the engine has no use for,
   * so that it is not written in vain for each call; from one script to another nothing is left out.
   */
  putImage(image: MemoryImage): void {
    const { memory } = this.#engine;
    image.put(memory, image === this.#put ? this.#unused : NOTHING);
    this.#put = image;
    if (!this.hasGrown) return;
    // The allocator has forgotten this part with the image, and takes new memory behind it when it needs more.
    new Uint8Array(memory.buffer).fill(0, this.#bytes);
    this.#bytes = memory.buffer.byteLength;
  }

  /** Since the last image was put. */
  get hasGrown(): boolean { return this.#engine.memory.buffer.byteLength > this.#bytes; }

  /** It should be replaced by another one. */
  get isWornOut(): boolean { return this.#engine.memory.buffer.byteLength > this.#imageBytes + GROWN_BYTES_MAX; }

  /** The value of a script, or an exception. */
  evaluate(source: string): Value {
    return this.#known(this.#evaluateRaw(source));
  }

  /** What the text means as JSON, or an exception. */
  parse(json: string): Value {
    const text = this.#newString(json);
    return this.isException(text) ? text : this.call(this.#parse, text);
  }

  call(func: Value, argument: Value): Value {
    const args = this.#allocate(4);
    new DataView(this.#engine.memory.buffer).setUint32(args, argument, true);
    return this.#known(this.#engine.qjs_call(func, this.#undefined, 1, args));
  }

  /** Runs getters and traps of proxies. */
  get(object: Value, name: string): Value {
    return this.#known(this.#engine.qjs_get_prop_string(object, this.#names.get(name) ?? this.#cString(name)));
  }

  /** The exception that the last operation ended with. */
  exception(): Value { return this.#known(this.#engine.qjs_get_exception()); }

  isException(value: Value): boolean { return this.#engine.qjs_is_exception(value) !== 0; }
  isNullish(value: Value): boolean { return this.#engine.qjs_is_undefined(value) !== 0 || this.#engine.qjs_is_null(value) !== 0; }
  isString(value: Value): boolean { return this.#engine.qjs_is_string(value) !== 0; }
  isObject(value: Value): boolean { return this.#engine.qjs_is_object(value) !== 0; }
  isFunction(value: Value): boolean { return this.#engine.qjs_is_function(value) !== 0; }
  isPromise(value: Value): boolean { return this.#engine.qjs_is_promise(value) !== 0; }
  isError(value: Value): boolean { return this.#engine.qjs_is_error(value) !== 0; }

  /** Length of a string in UTF-16 units. No script can change what that is. */
  lengthOf(text: Value): number {
    const length = this.get(text, 'length');
    if (this.#engine.qjs_is_number(length) === 0) throw new EngineFault('A string without a length.');
    return this.#engine.qjs_get_float64(length);
  }

  /** The text of a string, or null when it holds half of a surrogate pair and so is no Unicode text. */
  textOf(text: Value): string | null {
    const lengthOut = this.#allocate(4);
    const start = this.#engine.qjs_get_string_len(text, lengthOut);
    const length = new DataView(this.#engine.memory.buffer).getUint32(lengthOut, true);
    if (start === 0 || length > TEXT_BYTES_MAX) throw new EngineFault('A string could not be read.');
    const bytes = Buffer.from(this.#engine.memory.buffer, start, length);
    return isUtf8(bytes) ? bytes.toString('utf8') : null;
  }

  /** The C stack as it comes is as long as the longest limit needs. */
  #shortenStack({ stackBytesMax }: RoutingLimits): Span {
    const { __stack_pointer: stackPointer } = this.#engine;
    const end = stackPointer.value;
    const start = Math.min(end, Math.ceil((Math.min(stackBytesMax, STACK_BYTES_MAX) + STACK_SPARE_BYTES) / PAGE_BYTES) * PAGE_BYTES);
    stackPointer.value = start;
    return { start, end };
  }

  #start(limits: RoutingLimits): void {
    const engine = this.#engine;
    engine._initialize();
    if (engine.qjs_init2(INTRINSICS) !== 0) throw new EngineFault('QuickJS could not be initialised.');
    engine.qjs_set_memory_limit(limits.memoryBytesMax);
    engine.qjs_set_max_stack_size(Math.min(limits.stackBytesMax, STACK_BYTES_MAX));
    engine.qjs_set_gc_threshold(Math.min(limits.memoryBytesMax / 2, GC_THRESHOLD_BYTES));
    engine.qjs_set_interrupt_handler(1);
  }

  /** The engine's own generator would be seeded once, in the image. */
  #replaceRandom(): void {
    const name = this.#cString('random');
    const random = this.#known(this.#engine.qjs_new_host_function(name, 'random'.length, 0));
    const define = this.#evaluate("(random) => { Object.defineProperty(Math, 'random', { value: random, writable: true, configurable: true }); }");
    if (this.isException(this.call(define, random))) throw new EngineFault('Math.random could not be replaced.');
  }

  #evaluate(source: string): Value {
    const value = this.evaluate(source);
    if (this.isException(value)) throw new EngineFault(`A script of the sandbox failed: ${source}`);
    return value;
  }

  #evaluateRaw(source: string): number {
    const { at, length } = this.#utf8(source);
    return this.#engine.qjs_eval(at, length, this.#cString(SCRIPT_NAME), 0);
  }

  #newString(text: string): Value {
    const { at, length } = this.#utf8(text);
    const value = this.#known(this.#engine.qjs_new_string(at, length));
    this.#engine.wasm_free(at);
    return value;
  }

  #cString(text: string): number { return this.#utf8(text).at; }

  /** With a zero behind it, which does not count. */
  #utf8(text: string): { at: number; length: number } {
    const length = Buffer.byteLength(text, 'utf8');
    const at = this.#allocate(length + 1);
    const bytes = Buffer.from(this.#engine.memory.buffer, at, length + 1);
    bytes.write(text, 'utf8');
    bytes[length] = 0;
    return { at, length };
  }

  #allocate(bytes: number): number {
    const at = this.#engine.wasm_malloc(bytes);
    if (at === 0) throw new EngineFault('The engine has no memory left.');
    return at;
  }

  #known(value: number): Value {
    if (value === 0) throw new EngineFault('The engine has no memory left for a value.');
    return value as Value;
  }
}

/** Pages of this size that hold zeros only are not kept, but zeroed again. */
const PAGE_BYTES = 4096;
/** A shorter gap of zeros is kept: two copies cost more than one that is a little longer. */
const GAP_PAGES_MAX = 4;
const ZEROS = Buffer.alloc(PAGE_BYTES);

/** Bytes from `start` to before `end`. */
interface Span { readonly start: number; readonly end: number }
const NOTHING: Span = { start: 0, end: 0 };

/**
 * The whole state of an engine at one moment: its linear memory. Everything that a script can change lives there, so that
 * putting it back leaves nothing of what ran since, and brings free memory to zero as well.
 */
export class MemoryImage {
  readonly #runs: readonly { readonly start: number; readonly bytes: Uint8Array }[];
  /** Bytes that it covers, from the memory's beginning. */
  readonly length: number;

  private constructor(runs: readonly { start: number; bytes: Uint8Array }[], length: number) {
    this.#runs = runs;
    this.length = length;
  }

  static take(memory: WasmMemory, length: number): MemoryImage {
    const bytes = new Uint8Array(memory.buffer, 0, length);
    const runs: { start: number; bytes: Uint8Array }[] = [];
    let start = -1;
    let end = 0;
    for (let page = 0; page < bytes.length; page += PAGE_BYTES) {
      if (ZEROS.equals(bytes.subarray(page, page + PAGE_BYTES))) continue;
      if (start >= 0 && page - end > GAP_PAGES_MAX * PAGE_BYTES) {
        runs.push({ start, bytes: bytes.slice(start, end) });
        start = -1;
      }
      if (start < 0) start = page;
      end = page + PAGE_BYTES;
    }
    if (start >= 0) runs.push({ start, bytes: bytes.slice(start, end) });
    return new MemoryImage(runs, bytes.length);
  }

  /** What lies behind the image's length stays as it is, and so do the bytes of `but`, where the image has zeros only. */
  put(memory: WasmMemory, but: Span = NOTHING): void {
    const bytes = new Uint8Array(memory.buffer, 0, this.length);
    let at = 0;
    for (const run of this.#runs) {
      zero(bytes, at, run.start, but);
      bytes.set(run.bytes, run.start);
      at = run.start + run.bytes.length;
    }
    zero(bytes, at, this.length, but);
  }
}

function zero(bytes: Uint8Array, start: number, end: number, but: Span): void {
  if (but.start < start || but.end > end) bytes.fill(0, start, end);
  else {
    bytes.fill(0, start, but.start);
    bytes.fill(0, but.end, end);
  }
}
