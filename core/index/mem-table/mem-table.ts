import { mappedMemory } from '../../base/mapped-memory.ts';
import type { EntryList, IndexEntry } from '../format/entries.ts';

/** Entries for which room is made at first; fewer in a table that is expected to stay small. */
const ENTRIES_FIRST = 4_096;
const ENTRIES_FEW = 256;
/**
 * From here on room is made for all the entries to come, up to the last number: a growing table would halt the writer
 * for longer and longer copies. While another table has such room, which is being written and will leave it soon, room
 * is made up to the second number only.
 */
const ENTRIES_SMALL = 65_536;
const ENTRIES_LARGE = 262_144;
const ENTRIES_AT_ONCE = 1_048_576;

/**
 * The columns of a memtable, over shared memory, so that the job that writes it out gets them without a copy.
 * `prev` is the next smaller entry of the same hash (-1: none); `heads` holds, in no order, the number of the greatest
 * entry of each hash plus one (0: an empty slot).
 */
export interface MemTableColumns {
  readonly hashHi: Uint32Array;
  readonly hashLo: Uint32Array;
  readonly versions: Float64Array;
  readonly positions: Float64Array;
  readonly prev: Int32Array;
  readonly heads: Int32Array;
  readonly count: number;
  readonly hashes: number;
}

/** All columns of a table, and what only the table itself needs. */
interface Room {
  readonly capacity: number;
  readonly hashHi: Uint32Array;
  readonly hashLo: Uint32Array;
  readonly versions: Float64Array;
  readonly positions: Float64Array;
  readonly prev: Int32Array;
  readonly jump: Int32Array;
  readonly below: Int32Array;
  readonly heads: Int32Array;
}

/** Bytes of all columns of an entry. */
const ENTRY_BYTES = 44;

/** Room for that many entries, in one piece of memory. */
function newRoom(capacity: number): Room {
  const memory = mappedMemory(capacity * ENTRY_BYTES);
  const at = (column: number): number => column * 4 * capacity;
  return {
    capacity,
    versions: new Float64Array(memory, at(0), capacity),
    positions: new Float64Array(memory, at(2), capacity),
    heads: new Int32Array(memory, at(4), capacity * 2),
    hashHi: new Uint32Array(memory, at(6), capacity),
    hashLo: new Uint32Array(memory, at(7), capacity),
    prev: new Int32Array(memory, at(8), capacity),
    jump: new Int32Array(memory, at(9), capacity),
    below: new Int32Array(memory, at(10), capacity),
  };
}

/** The memory that the tables of one index pass on to each other. */
export class MemTableRooms {
  /** Room for many entries that an emptied table has left to the next one that grows so far. */
  #spare: Room | null = null;
  /** Some table has got such room. */
  #isInUse = false;

  /** A table has room for many and has not left it yet. */
  get isAwaited(): boolean {
    return this.#spare === null && this.#isInUse;
  }

  take(capacity: number): Room {
    const room = this.#spare;
    const isLarge = capacity > ENTRIES_SMALL;
    this.#isInUse ||= isLarge;
    if (room === null || !isLarge || capacity > room.capacity) return newRoom(capacity);
    this.#spare = null;
    return room;
  }

  leave(room: Room): void {
    this.#spare = room;
  }

  /** Keeps no room: none is needed for some time. */
  forget(): void {
    if (this.#spare === null) return;
    this.#spare = null;
    this.#isInUse = false;
  }
}

/**
 * The index entries that are in no table yet. The entries of one hash form a list from the greatest (version, position)
 * down, in which every entry also knows one much further down (a skew-binary jump pointer), so that searches take O(log
 * n) steps and adding a new greatest entry O(1). 44 bytes an entry, 36 for the only one of its hash, and no objects.
 */
export class MemTable {
  #room!: Room;
  #capacity!: number;
  #count = 0;
  #hashes = 0;
  #hashHi!: Uint32Array;
  #hashLo!: Uint32Array;
  #versions!: Float64Array;
  #positions!: Float64Array;
  #prev!: Int32Array;
  /**
   * The entry much further down plus one (0: none), and the number of entries below: zeros for a stream of one event,
   * whose memory is never touched.
   */
  #jump!: Int32Array;
  #below!: Int32Array;
  #isLinked = false;
  #heads!: Int32Array;
  /** A borrower may look at the columns at any later time. */
  isLent = false;

  readonly #entriesExpected: number;

  readonly #rooms: MemTableRooms;

  /** `entriesExpected` is the usual number of entries; more are taken too. */
  constructor(entriesExpected: number, rooms: MemTableRooms = new MemTableRooms()) {
    this.#entriesExpected = Math.min(entriesExpected, ENTRIES_AT_ONCE);
    this.#rooms = rooms;
    this.#use(rooms.take(entriesExpected === 0 ? ENTRIES_FEW : ENTRIES_FIRST));
  }

  #grow(): void {
    let capacity = this.#capacity * 2;
    const expected =
      this.#rooms.isAwaited && this.#capacity < ENTRIES_LARGE
        ? Math.min(this.#entriesExpected, ENTRIES_LARGE)
        : this.#entriesExpected;
    while (this.#capacity >= ENTRIES_SMALL && capacity < expected) capacity *= 2;
    this.#move(this.#rooms.take(capacity));
  }

  get count(): number {
    return this.#count;
  }

  /** The columns for a caller that goes on using them: a table that was lent is never emptied. */
  lend(): MemTableColumns {
    this.isLent = true;
    return this.columns();
  }

  /**
   * Forgets all entries. Room for many is kept for the next table that needs it: it would else wait for the garbage
   * collectors of all threads that have seen it, and a table that had room of its own would need as much memory again.
   */
  clear(): void {
    this.#heads.fill(0);
    if (this.#isLinked) {
      this.#jump.fill(0, 0, this.#count);
      this.#below.fill(0, 0, this.#count);
    }
    this.#isLinked = false;
    this.#count = 0;
    this.#hashes = 0;
    if (this.#capacity <= ENTRIES_SMALL || this.#capacity < this.#entriesExpected) return;
    this.#rooms.leave(this.#room);
    this.#use(this.#rooms.take(ENTRIES_FIRST));
  }

  columns(): MemTableColumns {
    return {
      hashHi: this.#hashHi,
      hashLo: this.#hashLo,
      versions: this.#versions,
      positions: this.#positions,
      prev: this.#prev,
      heads: this.#heads,
      count: this.#count,
      hashes: this.#hashes,
    };
  }

  #use(room: Room): void {
    this.#room = room;
    this.#capacity = room.capacity;
    this.#hashHi = room.hashHi;
    this.#hashLo = room.hashLo;
    this.#versions = room.versions;
    this.#positions = room.positions;
    this.#prev = room.prev;
    this.#jump = room.jump;
    this.#below = room.below;
    this.#heads = room.heads;
  }

  #move(room: Room): void {
    room.hashHi.set(this.#hashHi);
    room.hashLo.set(this.#hashLo);
    room.versions.set(this.#versions);
    room.positions.set(this.#positions);
    room.prev.set(this.#prev);
    room.jump.set(this.#jump);
    room.below.set(this.#below);
    const old = this.#heads;
    this.#use(room);
    for (let i = 0; i < old.length; i++) {
      const head = old[i]!;
      if (head !== 0) this.#heads[this.#slotOf(this.#hashHi[head - 1]!, this.#hashLo[head - 1]!)] = head;
    }
  }

  /** The slot that holds the hash, or the empty one where it belongs. At most half of the slots are taken. */
  #slotOf(hi: number, lo: number): number {
    const mask = this.#capacity * 2 - 1;
    let slot = Math.imul(hi ^ Math.imul(lo, 0x9e3779b1), 0x85ebca6b);
    slot = (slot ^ (slot >>> 15)) & mask;
    for (;;) {
      const head = this.#heads[slot]!;
      if (head === 0 || (this.#hashLo[head - 1] === lo && this.#hashHi[head - 1] === hi)) return slot;
      slot = (slot + 1) & mask;
    }
  }

  /** Negative when the entry is less than (version, position), 0 when equal. */
  #compare(entry: number, version: number, position: number): number {
    return this.#versions[entry]! - version || this.#positions[entry]! - position;
  }

  /** Adds an entry unless the same one is there. */
  add(hi: number, lo: number, version: number, position: number): void {
    if (this.#count === this.#capacity) this.#grow();
    const slot = this.#slotOf(hi, lo);
    const head = this.#heads[slot]! - 1;
    if (head < 0) this.#hashes++;
    else {
      const order = this.#compare(head, version, position);
      if (order === 0) return;
      if (order > 0) {
        this.#insertBelow(head, hi, lo, version, position);
        return;
      }
    }
    this.#heads[slot] = this.#append(hi, lo, version, position, head) + 1;
  }

  #append(hi: number, lo: number, version: number, position: number, below: number): number {
    const entry = this.#count++;
    this.#hashHi[entry] = hi;
    this.#hashLo[entry] = lo;
    this.#versions[entry] = version;
    this.#positions[entry] = position;
    this.#link(entry, below);
    return entry;
  }

  #link(entry: number, below: number): void {
    this.#prev[entry] = below;
    if (below < 0) return;
    this.#isLinked = true;
    const jump = this.#jump[below]! - 1;
    const further = jump < 0 ? -1 : this.#jump[jump]! - 1;
    const jumpDepth = this.#depthOf(jump);
    const depth = this.#depthOf(below);
    this.#jump[entry] = (depth - jumpDepth === jumpDepth - this.#depthOf(further) ? further : below) + 1;
    this.#below[entry] = depth;
  }

  /** Entries from this one down; 0 for none. */
  #depthOf(entry: number): number {
    return entry < 0 ? 0 : this.#below[entry]! + 1;
  }

  /**
   * An entry that is not the greatest of its hash: streams whose hashes collide, or a replay. Those above it are linked
   * anew from the bottom up, since their depths change.
   */
  #insertBelow(head: number, hi: number, lo: number, version: number, position: number): void {
    const above: number[] = [];
    let below = head;
    let order = 1;
    while (below >= 0 && (order = this.#compare(below, version, position)) > 0) {
      above.push(below);
      below = this.#prev[below]!;
    }
    if (below >= 0 && order === 0) return;
    let last = this.#append(hi, lo, version, position, below);
    for (let i = above.length - 1; i >= 0; i--) {
      this.#link(above[i]!, last);
      last = above[i]!;
    }
  }

  /** Number of the greatest entry of the hash; -1 for none. */
  #headOf(hi: number, lo: number): number {
    return this.#heads[this.#slotOf(hi, lo)]! - 1;
  }

  /** Number of the greatest entry of the hash that is at most (version, position), or -1. */
  #floorOf(hi: number, lo: number, version: number, position: number): number {
    let entry = this.#headOf(hi, lo);
    while (entry >= 0 && this.#compare(entry, version, position) > 0) {
      const jump = this.#jump[entry]! - 1;
      entry = jump >= 0 && this.#compare(jump, version, position) > 0 ? jump : this.#prev[entry]!;
    }
    return entry;
  }

  /**
   * The greatest entry of the hash that is at most (version, position). False, with `out` untouched, when there is
   * none.
   */
  floor(hi: number, lo: number, version: number, position: number, out: IndexEntry): boolean {
    const entry = this.#floorOf(hi, lo, version, position);
    if (entry < 0) return false;
    out.version = this.#versions[entry]!;
    out.position = this.#positions[entry]!;
    return true;
  }

  /**
   * The least entry of the hash that is at least (version, position). False, with `out` untouched, when there is none.
   */
  ceiling(hi: number, lo: number, version: number, position: number, out: IndexEntry): boolean {
    const entry = this.#ceilingFrom(this.#headOf(hi, lo), version, position);
    if (entry < 0) return false;
    out.version = this.#versions[entry]!;
    out.position = this.#positions[entry]!;
    return true;
  }

  /** Number of the least entry from the head of its hash down that is at least (version, position), or -1. */
  #ceilingFrom(head: number, version: number, position: number): number {
    let entry = head;
    if (entry < 0 || this.#compare(entry, version, position) < 0) return -1;
    for (;;) {
      const jump = this.#jump[entry]! - 1;
      const prev = this.#prev[entry]!;
      if (jump >= 0 && this.#compare(jump, version, position) >= 0) entry = jump;
      else if (prev >= 0 && this.#compare(prev, version, position) >= 0) entry = prev;
      else return entry;
    }
  }

  /**
   * Where numbers are positions: appends those of the hash from `from` on upwards, or downwards, nearest first, to
   * `out`, until that has `count`.
   */
  run(hi: number, lo: number, from: number, isUpwards: boolean, count: number, out: number[]): void {
    if (out.length >= count) return;
    if (!isUpwards) {
      let entry = this.#floorOf(hi, lo, from, Number.MAX_SAFE_INTEGER);
      for (; entry >= 0 && out.length < count; entry = this.#prev[entry]!) out.push(this.#versions[entry]!);
      return;
    }
    const head = this.#headOf(hi, lo);
    const least = this.#ceilingFrom(head, from, 0);
    if (least < 0) return;
    // The list leads downwards, so it is entered at the greatest one that is wanted.
    const below = this.#below[least]! + count - out.length - 1;
    let entry = head;
    while (this.#below[entry]! > below) {
      const jump = this.#jump[entry]! - 1;
      entry = jump >= 0 && this.#below[jump]! >= below ? jump : this.#prev[entry]!;
    }
    const first = out.length;
    for (; entry !== least; entry = this.#prev[entry]!) out.push(this.#versions[entry]!);
    out.push(this.#versions[least]!);
    for (let low = first, high = out.length - 1; low < high; low++, high--) {
      const swapped = out[low]!;
      out[low] = out[high]!;
      out[high] = swapped;
    }
  }

  /** Appends the entries of the hash with fromVersion <= version <= toVersion to `out`, greatest first. */
  range(hi: number, lo: number, fromVersion: number, toVersion: number, out: EntryList): void {
    let entry = this.#floorOf(hi, lo, toVersion, Number.MAX_SAFE_INTEGER);
    for (; entry >= 0 && this.#versions[entry]! >= fromVersion; entry = this.#prev[entry]!) {
      out.push(this.#versions[entry]!, this.#positions[entry]!);
    }
  }
}

/** Bits of a hash that divide the entries into parts, at most. */
const PART_BITS_MAX = 16;
/** Entries of a part, about: as few as make its sorting cheap, where there are enough parts. */
const PART_ENTRIES = 8;
/** Larger parts, which hashes that were chosen with care may make, are not sorted by insertion. */
const INSERTION_MAX = 256;
/** Parts sorted between two checkpoints. */
const PARTS_AT_ONCE = 8_192;

function partBits(hashes: number): number {
  return Math.min(PART_BITS_MAX, Math.max(1, Math.ceil(Math.log2(Math.max(1, hashes) / PART_ENTRIES))));
}

/** Sorts heads[from, to) by hash, greatest first. */
function sortPart(columns: MemTableColumns, heads: Int32Array, from: number, to: number): void {
  const { hashHi, hashLo } = columns;
  if (to - from > INSERTION_MAX) {
    heads.subarray(from, to).sort((a, b) => hashHi[b]! - hashHi[a]! || hashLo[b]! - hashLo[a]!);
    return;
  }
  for (let i = from + 1; i < to; i++) {
    const entry = heads[i]!;
    const hi = hashHi[entry]!;
    const lo = hashLo[entry]!;
    let at = i - 1;
    for (; at >= from; at--) {
      const other = heads[at]!;
      const otherHi = hashHi[other]!;
      if (otherHi > hi || (otherHi === hi && hashLo[other]! > lo)) break;
      heads[at + 1] = other;
    }
    heads[at + 1] = entry;
  }
}

/**
 * Numbers of the greatest entries of all hashes, sorted by hash, greatest first: put into their parts, a dozen each,
 * which are sorted.
 */
export async function sortedHeads(columns: MemTableColumns, checkpoint: () => Promise<void>): Promise<Int32Array> {
  const heads = new Int32Array(columns.hashes);
  const bits = partBits(columns.hashes);
  const parts = 2 ** bits;
  const shift = 32 - bits;
  // Ascending numbers of parts are descending hashes.
  const last = parts - 1;
  const { hashHi } = columns;
  const ends = new Int32Array(parts + 1);
  for (let slot = 0; slot < columns.heads.length; slot++)
    if (columns.heads[slot] !== 0) ends[last - (hashHi[columns.heads[slot]! - 1]! >>> shift) + 1]!++;
  for (let part = 1; part <= parts; part++) ends[part]! += ends[part - 1]!;
  await checkpoint();
  for (let slot = 0; slot < columns.heads.length; slot++)
    if (columns.heads[slot] !== 0) {
      const entry = columns.heads[slot]! - 1;
      heads[ends[last - (hashHi[entry]! >>> shift)]!++] = entry;
    }
  for (let part = 0; part < parts; part++) {
    sortPart(columns, heads, part === 0 ? 0 : ends[part - 1]!, ends[part]!);
    if (part % PARTS_AT_ONCE === 0) await checkpoint();
  }
  return heads;
}
