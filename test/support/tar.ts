/** A file of a tar archive. What no extent covers is zero. */
export interface TarFile {
  readonly path: string;
  readonly size: number;
  readonly extents: readonly { readonly at: number; readonly bytes: Uint8Array }[];
}

const BLOCK = 512;
/** Zero runs of at least this many bytes are left out of the extents. */
const HOLE_BYTES = 4096;

/**
 * Reads a tar archive: plain files, GNU long names and GNU sparse files (a recorded chunk of 256 MiB holds 2 KiB of
 * data). Folders are left out. Throws when the archive is cut short.
 */
export function readTar(tar: Uint8Array): TarFile[] {
  const files: TarFile[] = [];
  let longName: string | null = null;
  let at = 0;
  while (at + BLOCK <= tar.length && tar[at] !== 0) {
    const header = tar.subarray(at, at + BLOCK);
    const storedBytes = octal(header, 124, 12);
    const type = String.fromCharCode(header[156]!);
    const path = (longName ?? text(header, 0, 100)).replace(/^\.\//, '');
    longName = null;
    at += BLOCK;
    let map: SparseMap | null = null;
    if (type === 'S') {
      map = sparseMap(tar, header, at);
      at = map.dataAt;
    }
    if (at + storedBytes > tar.length) throw new Error(`The archive ends inside ${path}.`);
    const stored = tar.subarray(at, at + storedBytes);
    at += Math.ceil(storedBytes / BLOCK) * BLOCK;
    if (type === 'L') longName = text(stored, 0, stored.length);
    else if (type === '0' || type === '\0') files.push({ path, size: storedBytes, extents: dense(stored, 0) });
    else if (map !== null) files.push({ path, size: map.sizeBytes, extents: sparse(stored, map) });
    else if (type !== '5') throw new Error(`The archive holds ${path} of type ${type}, which is not supported.`);
  }
  return files;
}

interface SparseMap {
  readonly sizeBytes: number;
  readonly parts: readonly { readonly at: number; readonly length: number }[];
  readonly dataAt: number;
}

/** The old GNU form: four parts in the header, 21 in each block that continues it. */
function sparseMap(tar: Uint8Array, header: Uint8Array, after: number): SparseMap {
  const parts: { at: number; length: number }[] = [];
  const collect = (block: Uint8Array, from: number, count: number): void => {
    for (let i = 0; i < count && block[from + i * 24] !== 0; i++) {
      parts.push({ at: octal(block, from + i * 24, 12), length: octal(block, from + i * 24 + 12, 12) });
    }
  };
  collect(header, 386, 4);
  let dataAt = after;
  for (let more = header[482] !== 0; more;) {
    const block = tar.subarray(dataAt, dataAt + BLOCK);
    collect(block, 0, 21);
    more = block[504] !== 0;
    dataAt += BLOCK;
  }
  return { sizeBytes: octal(header, 483, 12), parts, dataAt };
}

function sparse(stored: Uint8Array, map: SparseMap): TarFile['extents'] {
  let from = 0;
  return map.parts.flatMap(({ at, length }) => {
    const part = stored.subarray(from, from + length);
    from += length;
    return dense(part, at);
  });
}

/** The parts of `bytes` between long runs of zeros. */
function dense(bytes: Uint8Array, base: number): { at: number; bytes: Uint8Array }[] {
  const extents: { at: number; bytes: Uint8Array }[] = [];
  let start = -1;
  for (let at = 0; at < bytes.length; at += HOLE_BYTES) {
    const isHole = isZero(bytes.subarray(at, at + HOLE_BYTES));
    if (isHole && start >= 0) {
      extents.push({ at: base + start, bytes: bytes.subarray(start, at) });
      start = -1;
    } else if (!isHole && start < 0) start = at;
  }
  if (start >= 0) extents.push({ at: base + start, bytes: bytes.subarray(start) });
  return extents;
}

function isZero(bytes: Uint8Array): boolean {
  for (const byte of bytes) if (byte !== 0) return false;
  return true;
}

function text(b: Uint8Array, at: number, length: number): string {
  const end = b.indexOf(0, at);
  return new TextDecoder().decode(b.subarray(at, end < 0 || end > at + length ? at + length : end));
}

function octal(b: Uint8Array, at: number, length: number): number {
  const digits = text(b, at, length).trim();
  const value = digits === '' ? 0 : Number.parseInt(digits, 8);
  if (!/^[0-7]*$/.test(digits) || !Number.isSafeInteger(value))
    throw new Error(`The archive holds the number "${digits}".`);
  return value;
}
