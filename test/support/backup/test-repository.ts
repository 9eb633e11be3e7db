import { openRepository } from '../../../core/backup/repository/repository.ts';
import type { Repository, RepositoryOptions, RepositoryWorld } from '../../../core/backup/repository/api.ts';
import type { ObjectStore } from '../../../core/ports/object-store.ts';
import { nodeCompression } from '../../../infra/node-compression.ts';
import { nodeDigests } from '../../../infra/node-digests.ts';
import { nodeKeys } from '../../../infra/node-keys.ts';
import { ManualClock } from '../manual-clock.ts';
import { SeededIds } from '../seeded-ids.ts';
import { TEST_NOW_MS } from '../test-store.ts';

/** Small frames, so that small content has several. */
export const TEST_FRAME_BYTES = 4_096;

export function repositoryWorld(world: Partial<RepositoryWorld> = {}): RepositoryWorld {
  return {
    clock: new ManualClock(TEST_NOW_MS, 'microtask'),
    ids: new SeededIds(7),
    digests: nodeDigests,
    keys: nodeKeys,
    compression: nodeCompression,
    ...world,
  };
}

export function openTestRepository(
  objects: ObjectStore,
  options: Partial<RepositoryOptions> = {},
  world: Partial<RepositoryWorld> = {},
): Promise<Repository> {
  return openRepository(
    objects,
    { key: null, create: true, compression: 'off', frameBytes: TEST_FRAME_BYTES, ...options },
    repositoryWorld(world),
  );
}

/** Content in pieces of a length that fits no frame; the buffer is used again, as the contract allows. */
export function inPieces(bytes: Uint8Array, pieceBytes = 1_000): () => AsyncIterable<Uint8Array> {
  return async function* pieces() {
    const buffer = new Uint8Array(pieceBytes);
    for (let at = 0; at < bytes.length; at += pieceBytes) {
      const part = bytes.subarray(at, at + pieceBytes);
      buffer.set(part);
      yield buffer.subarray(0, part.length);
      buffer.fill(0xee);
    }
  };
}

export async function collect(content: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of content) {
    pieces.push(piece.slice());
    length += piece.length;
  }
  const out = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    out.set(piece, at);
    at += piece.length;
  }
  return out;
}
