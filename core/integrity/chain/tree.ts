import { nodeHash, type Sha256 } from '../format/chain-layout.ts';

/**
 * The complete trees into which the leaves so far fall, from the left, and how many leaves each has: as many as the
 * count has bits that are set.
 */
export interface TreeState {
  readonly count: number;
  readonly peaks: readonly Uint8Array[];
}

/** A Merkle tree as RFC 6962 shapes it, which grows by a leaf at a time and holds no more than one hash a level. */
export class Tree {
  readonly #sha256: Sha256;
  readonly #peaks: Uint8Array[];
  #count: number;

  constructor(sha256: Sha256, from: TreeState = { count: 0, peaks: [] }) {
    this.#sha256 = sha256;
    this.#peaks = [...from.peaks];
    this.#count = from.count;
  }

  get count(): number {
    return this.#count;
  }
  get state(): TreeState {
    return { count: this.#count, peaks: [...this.#peaks] };
  }

  /** The leaf is kept: it must stay as it is. */
  add(leaf: Uint8Array): void {
    let hash = leaf;
    // Two complete trees of the same size become one.
    for (let count = this.#count; count % 2 === 1; count = (count - 1) / 2)
      hash = nodeHash(this.#sha256, this.#peaks.pop()!, hash);
    this.#peaks.push(hash);
    this.#count++;
  }

  root(): Uint8Array {
    const last = this.#peaks.at(-1);
    if (last === undefined) return this.#sha256();
    return this.#peaks.slice(0, -1).reduceRight((right, left) => nodeHash(this.#sha256, left, right), last);
  }
}

/**
 * Hashes beside the way from a leaf to the root, the lowest first, by which the root can be told from the leaf alone.
 */
export function inclusionPath(sha256: Sha256, leaves: readonly Uint8Array[], index: number): Uint8Array[] {
  const path: Uint8Array[] = [];
  let from = 0;
  let to = leaves.length;
  while (to - from > 1) {
    const middle = from + largestPowerBelow(to - from);
    if (index < middle) {
      path.unshift(rootOf(sha256, leaves, middle, to));
      to = middle;
    } else {
      path.unshift(rootOf(sha256, leaves, from, middle));
      from = middle;
    }
  }
  return path;
}

function rootOf(sha256: Sha256, leaves: readonly Uint8Array[], from: number, to: number): Uint8Array {
  const tree = new Tree(sha256);
  for (let i = from; i < to; i++) tree.add(leaves[i]!);
  return tree.root();
}

/** The largest power of two that is smaller than `count`, which is at least 2. */
function largestPowerBelow(count: number): number {
  let power = 1;
  while (power * 2 < count) power *= 2;
  return power;
}
