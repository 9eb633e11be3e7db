export const PAGE_BYTES_MAX: number;

interface BuiltPage {
  readonly page: Uint8Array<ArrayBuffer>;
  readonly assets: ReadonlyMap<string, Uint8Array<ArrayBuffer>>;
  readonly sources: readonly string[];
}

export function buildPage(): Promise<BuiltPage>;
export function compressed(
  bytes: Uint8Array<ArrayBuffer>,
  isForGood: boolean,
): Promise<{ readonly br: Uint8Array<ArrayBuffer>; readonly gzip: Uint8Array<ArrayBuffer> }>;
