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
export function instantiate(module: WasmModule, imports: Readonly<Record<string, Readonly<Record<string, unknown>>>>): unknown {
  return new api.Instance(module, imports).exports;
}
