import type { Random } from './random.ts';
import { SparseImage } from './sparse-image.ts';

/** What a disk writes all or nothing of, in bytes. */
export const SECTOR_BYTES = 512;

/**
 * What becomes of bytes that were never synced: a power loss leaves none, all or any of them. `clean` is no power loss:
 * only the process has ended, and the system could not write them. It still shows them, and holds them for written.
 */
export type RestartMode = 'drop' | 'keep' | 'partial' | 'clean';

type Pending =
  | { readonly kind: 'write'; readonly position: number; readonly bytes: Uint8Array }
  | { readonly kind: 'truncate'; readonly size: number };

/** One file of the faulty disk: what programs see, what is surely on the disk, and the operations in between. */
export class FaultyFile {
  /** As programs see it: the page cache. */
  readonly current: SparseImage;
  #durable: SparseImage;
  #pending: Pending[] = [];
  handles = 0;
  isNamed = true;
  isSealed = false;
  /** Changes so far: a clock of its own. Damage leaves it as it is. */
  modified = 1;
  syncHasFailed = false;

  constructor(current = new SparseImage(), durable = current.copy()) {
    this.current = current;
    this.#durable = durable;
  }

  get hasUnsynced(): boolean {
    return this.#pending.length > 0;
  }

  write(position: number, bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    this.current.write(position, bytes);
    this.modified++;
    this.#pending.push({ kind: 'write', position, bytes: bytes.slice() });
  }

  /** Writes some of the sectors of a range, as a call that is cut off does. */
  writeSome(position: number, bytes: Uint8Array, random: Random): void {
    forSectors(position, bytes, (_sector, at, part) => {
      if (random.chance(0.5)) this.write(at, part);
    });
  }

  truncate(size: number): void {
    this.current.truncate(size);
    this.modified++;
    this.#pending.push({ kind: 'truncate', size });
  }

  sync(): void {
    for (const operation of this.#pending) apply(this.#durable, operation);
    this.#pending = [];
  }

  /** The system took what it could not write for written: some of it is on the disk, the rest never gets there. */
  failSync(random: Random): void {
    this.#durable = this.#persistSome(random);
    this.#pending = [];
    this.syncHasFailed = true;
  }

  /** Damages a byte wherever the file is kept. */
  corrupt(offset: number, xor: number): void {
    for (const image of [this.current, this.#durable]) {
      if (offset < image.size) image.write(offset, Uint8Array.of(image.read(offset, 1)[0]! ^ xor));
    }
  }

  /** The file as the next process finds it. */
  afterRestart(mode: RestartMode, random: Random): FaultyFile {
    // A sync writes what is dirty. What is clean, and not on the disk, gets there only when it is written again.
    if (mode === 'clean')
      return new FaultyFile(this.current.copy(), random.chance(0.5) ? this.#durable.copy() : this.#persistSome(random));
    if (mode === 'partial') return new FaultyFile(this.#persistSome(random));
    const image = this.#durable.copy();
    if (mode === 'keep') for (const operation of this.#pending) apply(image, operation);
    return new FaultyFile(image);
  }

  /**
   * Each sector holds the version it had after some of the pending writes to it, each sector on its own, so writes
   * tear and overtake each other. Length changes reach the disk in their order, up to a point chosen apart from the
   * data: what lies beyond the length is gone, and what is within it but was not written reads as zeros.
   */
  #persistSome(random: Random): SparseImage {
    const extreme = random.int(0, 5);
    const keep = (count: number): number => (extreme === 0 ? 0 : extreme === 1 ? count : random.int(0, count));
    const left = new Map<number, number>();
    for (const operation of this.#pending) {
      if (operation.kind === 'write')
        forSectors(operation.position, operation.bytes, (sector) => left.set(sector, (left.get(sector) ?? 0) + 1));
    }
    for (const [sector, count] of left) left.set(sector, keep(count));
    const lengthChanges = keep(this.#pending.length);
    const image = this.#durable.copy();
    let size = image.size;
    this.#pending.forEach((operation, i) => {
      if (operation.kind === 'truncate') {
        if (i >= lengthChanges) return;
        image.truncate(operation.size);
        size = operation.size;
        return;
      }
      forSectors(operation.position, operation.bytes, (sector, at, part) => {
        const versions = left.get(sector)!;
        if (versions > 0) image.write(at, part);
        left.set(sector, versions - 1);
      });
      if (i < lengthChanges) size = Math.max(size, operation.position + operation.bytes.length);
    });
    image.truncate(size);
    return image;
  }
}

function apply(image: SparseImage, operation: Pending): void {
  if (operation.kind === 'write') image.write(operation.position, operation.bytes);
  else image.truncate(operation.size);
}

/** Cuts a range at the borders of sectors. */
function forSectors(
  position: number,
  bytes: Uint8Array,
  visit: (sector: number, at: number, part: Uint8Array) => void,
): void {
  const end = position + bytes.length;
  for (let at = position; at < end;) {
    const sector = Math.floor(at / SECTOR_BYTES);
    const to = Math.min(end, (sector + 1) * SECTOR_BYTES);
    visit(sector, at, bytes.subarray(at - position, to - position));
    at = to;
  }
}
