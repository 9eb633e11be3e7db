/** What is used of WebAssembly; the types of Node.js leave most of it out. */
export interface WasmModule { readonly __module?: never }
export interface WasmMemory {
  readonly buffer: ArrayBuffer;
  /** By so many pages of 64 KiB. Detaches the buffer. */
  grow(pages: number): number;
}

interface WebAssemblyApi {
  compile(bytes: Uint8Array): Promise<WasmModule>;
  readonly Instance: new (module: WasmModule, imports: Readonly<Record<string, Readonly<Record<string, unknown>>>>) => { readonly exports: unknown };
}

const api = (globalThis as unknown as { WebAssembly: WebAssemblyApi }).WebAssembly;

export function compile(bytes: Uint8Array): Promise<WasmModule> {
  return api.compile(bytes);
}

/** The exports of a new instance. */
function instantiate(module: WasmModule, imports: Readonly<Record<string, Readonly<Record<string, unknown>>>>): unknown {
  return new api.Instance(module, imports).exports;
}

/**
 * The functions of quickjs-wasi's C interface that are used here. A value is a pointer to a JSValue on the C heap; the
 * interface of the package's own classes makes a fresh instance a call, so its exports are called directly. The package's
 * version is pinned for that.
 */
export interface Engine {
  readonly memory: WasmMemory;
  /** Where the C stack begins, which grows down to 0. */
  readonly __stack_pointer: { value: number };
  _initialize(): void;
  qjs_init2(intrinsics: number): number;
  qjs_set_memory_limit(bytes: number): void;
  qjs_set_max_stack_size(bytes: number): void;
  qjs_set_gc_threshold(bytes: number): void;
  qjs_set_interrupt_handler(isEnabled: number): void;
  qjs_eval(code: number, codeLength: number, fileName: number, flags: number): number;
  qjs_call(func: number, self: number, argCount: number, args: number): number;
  qjs_get_exception(): number;
  qjs_get_undefined(): number;
  qjs_get_prop_string(object: number, name: number): number;
  qjs_new_string(text: number, length: number): number;
  qjs_new_number(value: number): number;
  qjs_new_host_function(name: number, nameLength: number, argCount: number): number;
  qjs_get_string_len(value: number, lengthOut: number): number;
  qjs_get_float64(value: number): number;
  qjs_is_exception(value: number): number;
  qjs_is_undefined(value: number): number;
  qjs_is_null(value: number): number;
  qjs_is_string(value: number): number;
  qjs_is_number(value: number): number;
  qjs_is_object(value: number): number;
  qjs_is_function(value: number): number;
  qjs_is_promise(value: number): number;
  qjs_is_error(value: number): number;
  wasm_malloc(bytes: number): number;
  wasm_free(pointer: number): void;
}

/** All that the engine can ask of the host. It cannot ask for more: these are the imports of its module. */
export interface EngineHost {
  /** UTC milliseconds. */
  nowMs(): number;
  /** At least 0 and below 1. */
  random(): number;
  /** Whether the running script must end. Asked every few thousand steps. */
  isOver(): boolean;
}

/** Statuses of WASI. */
const SUCCESS = 0;
const BAD_DESCRIPTOR = 8;
const NOT_SUPPORTED = 52;
const NANOSECONDS_PER_MS = 1_000_000n;

/** A new engine with memory of its own. Takes a compiled module, so that it costs no compilation. */
export function startEngine(module: WasmModule, host: EngineHost): Engine {
  const engine: Engine = instantiate(module, {
    env: {
      host_call: () => engine.qjs_new_number(host.random()),
      host_interrupt: () => (host.isOver() ? 1 : 0),
      host_get_timezone_offset: () => 0,
      host_promise_rejection: () => {},
      host_module_normalize: () => 0,
      host_module_load: () => 0,
    },
    wasi_snapshot_preview1: {
      clock_time_get: (_id: number, _precision: bigint, out: number) => {
        new DataView(engine.memory.buffer).setBigUint64(out, BigInt(Math.trunc(host.nowMs())) * NANOSECONDS_PER_MS, true);
        return SUCCESS;
      },
      random_get: (out: number, length: number) => {
        new Uint8Array(engine.memory.buffer, out, length).fill(0);
        return SUCCESS;
      },
      fd_write: () => BAD_DESCRIPTOR,
      fd_fdstat_get: () => BAD_DESCRIPTOR,
      fd_close: () => NOT_SUPPORTED,
      fd_seek: () => NOT_SUPPORTED,
    },
  }) as Engine;
  return engine;
}
