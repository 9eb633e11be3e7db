import type { Ids } from '../../core/ports/ids.ts';
import { Random } from './random.ts';

/** Version 4 UUIDs that are the same in every run with the same seed. */
export class SeededIds implements Ids {
  readonly #random: Random;

  constructor(seed = 1) {
    this.#random = new Random(seed);
  }

  uuidBytes(): Uint8Array {
    const id = this.#random.bytes(16);
    id[6] = (id[6]! & 0x0f) | 0x40;
    id[8] = (id[8]! & 0x3f) | 0x80;
    return id;
  }
}
