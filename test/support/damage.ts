import type { Storage } from '../../core/ports/storage.ts';
import { verifyDirectory } from '../../core/integrity/integrity.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { ManualClock } from './manual-clock.ts';

/** Equal bytes that lie on both sides of a place in the payload of an event. */
const AROUND = 64;

/**
 * Flips a bit in the payload of an event of this file, so that every record can still be walked, and gives where; at
 * the same place once more, it is as it was.
 */
export async function flipPayload(storage: Storage, path: string, place?: number): Promise<number> {
  const file = await storage.open(path, 'write');
  try {
    const bytes = Uint8Array.from(await file.read(0, file.size));
    const at = place ?? payloadIn(bytes);
    await file.writeAt(at, Uint8Array.of(bytes[at]! ^ 0x10));
    await file.sync();
    await file.seal();
    return at;
  } finally {
    await file.close();
  }
}

/** As events of tests have it: the same byte over and over, and none that is zero. */
function payloadIn(bytes: Uint8Array): number {
  for (let at = 128 + AROUND, run = 0; at < bytes.length; at++) {
    run = bytes[at] !== 0 && bytes[at] === bytes[at - 1] ? run + 1 : 0;
    if (run === 2 * AROUND) return at - AROUND;
  }
  throw new Error('there is no payload in this file');
}

export async function bytesOf(storage: Storage, path: string): Promise<Buffer> {
  const file = await storage.open(path, 'read');
  try {
    return Buffer.from(Uint8Array.from(await file.read(0, file.size)));
  } finally {
    await file.close();
  }
}

/** What `skua verify` finds. */
export async function findingsOf(storage: Storage): Promise<string[]> {
  const found: string[] = [];
  for await (const each of verifyDirectory({ storage, digests: nodeDigests, clock: new ManualClock() }))
    if (each.kind === 'finding') found.push(`${each.file}: ${each.code}`);
  return found;
}
