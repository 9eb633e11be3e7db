/** What a function's bundle amounts to, in bytes without source maps and WebAssembly. */
interface FunctionSize {
  readonly name: string;
  readonly bytes: number;
  readonly bytesMax: number;
  /** What is loaded at the start. */
  readonly indexBytes: number;
  /** By package or folder. */
  readonly inputs: Readonly<Record<string, number>>;
  /** Files that it is made of. */
  readonly sources: readonly string[];
}

export function buildFunctions(outdir?: string): Promise<FunctionSize[]>;
export function sizeLines(sizes: readonly FunctionSize[]): string[];
export function sizeProblems(sizes: readonly FunctionSize[]): string[];
