import { setTimeout as sleep } from 'node:timers/promises';
import { StreamDeletedError } from '@kurrent/kurrentdb-client';
import { Refused } from './day.ts';
import { look, streamsOf } from './patients.ts';
import type { Skua } from './skua.ts';

export type Proof = { stream: string; isErased: boolean; files: number; bytes: number; traces: number };

/**
 * Deletes a patient for good: no read returns the events from now on. A scavenge then takes them out of the files, and
 * a search through every byte of the files proves it. After a failure it can be called again.
 */
export async function erase(skua: Skua, id: string): Promise<Proof[]> {
  if ((await look(skua.client, id).catch(unlessDeleted)) === null) throw new Refused(404, 'There is no such patient.');
  for (const stream of streamsOf(id)) await skua.client.tombstoneStream(stream).catch(unlessDeleted);
  await scavenge(skua);
  const proofs: Proof[] = [];
  for (const stream of streamsOf(id)) proofs.push(await prove(skua, stream));
  return proofs;
}

function unlessDeleted(error: unknown): void {
  if (!(error instanceof StreamDeletedError)) throw error;
}

async function scavenge({ call }: Skua): Promise<void> {
  await call('POST', '/admin/scavenge?startAfresh=true');
  for (;;) {
    const last = await call<{ scavengeResult: string; error?: string }>('GET', '/admin/scavenge/last');
    if (last!.scavengeResult === 'Success') return;
    if (last!.scavengeResult !== 'InProgress') throw new Error(`${last!.scavengeResult}: ${last!.error}`);
    await sleep(100);
  }
}

async function prove({ call }: Skua, stream: string): Promise<Proof> {
  const { proofId } = (await call<{ proofId: string }>('POST', '/admin/erasure', { stream }))!;
  for (;;) {
    const proof = await call<{ report: Proof | null; error: string | null }>('GET', `/admin/erasure/${proofId}`);
    if (proof!.error !== null) throw new Error(proof!.error);
    if (proof!.report !== null) {
      const { isErased, files, bytes, traces } = proof!.report;
      return { stream, isErased, files, bytes, traces };
    }
    await sleep(100);
  }
}
