import { expect, it } from 'vitest';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { ANY } from '../../core/streams/api.ts';
import { redact } from '../../core/streams/redact/redact.ts';
import { filesWith, MARKER, paid } from '../scavenge/marks-kit.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { openProven, scavenge, verify } from './proof-kit.ts';

/** What scavenges leave of redacted events, beside the chain of hashes. */

const FOLDERS = ['', 'index', 'index/scavenging', 'proofs'];
const idOf = (n: number): string => `cdcdcdcd-0000-4000-8000-${String(n).padStart(12, '0')}`;

it('a chain of hashes stays whole where events are redacted, once and again', async () => {
  const storage = new MemoryStorage();
  const ids = new SeededIds(5);
  let open = await openProven(storage);
  for (let n = 0; n < 9; n++) await open.store.append('orders', ANY, [paid(idOf(n), n === 4 ? MARKER : `no ${n}`)]);
  const anchors = [await open.hashChain!.anchor()];
  const mark = (metadata: readonly string[]) =>
    redact(open.store, ids, 'ann', { stream: 'orders', numbers: [4], reason: 'a card', metadata });
  for (const [run, metadata] of [[], ['$correlationId'], ['$causationId']].entries()) {
    await mark(metadata);
    await scavenge(open);
    const before = await verify(storage, anchors);
    expect(before).toMatchObject({ findings: 0, removed: 0 });
    expect((await verify(storage, anchors, true)).told.map(({ code }) => code)).toEqual(['uncovered']);
    anchors.push(await open.hashChain!.anchor());
    await open.close();
    expect(await verify(storage, anchors, true)).toMatchObject({ findings: 0, redacted: 1, removed: 0, uncovered: 0 });
    expect(await filesWith(storage, MARKER, FOLDERS), `run ${run}`).toEqual([]);
    open = await openProven(storage);
  }
  await open.close();
});
