import { randomFillSync } from 'node:crypto';
import type { Ids } from '../core/ports/ids.ts';

/** Random bytes drawn at once: one call to the generator for 256 ids, because an id is needed for every record. */
const BATCH_BYTES = 4_096;

class SystemIds implements Ids {
  readonly #batch = new Uint8Array(BATCH_BYTES);
  #at = BATCH_BYTES;

  uuidBytes(): Uint8Array {
    if (this.#at === BATCH_BYTES) {
      randomFillSync(this.#batch);
      this.#at = 0;
    }
    const id = this.#batch.slice(this.#at, this.#at + 16);
    this.#at += 16;
    id[6] = (id[6]! & 0x0f) | 0x40;
    id[8] = (id[8]! & 0x3f) | 0x80;
    return id;
  }
}

/** Version 4 UUIDs from the system's random generator. */
export const systemIds: Ids = new SystemIds();
