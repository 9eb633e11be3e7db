import { describe, expect, it } from 'vitest';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { inclusionPath, Tree } from '../../core/integrity/chain/tree.ts';
import { sha256By } from '../../core/integrity/format/sha256.ts';
import { parseEventProof, verifyEvent } from '../../core/integrity/format/event-proof.ts';
import { decodeText, encodeText } from '../../core/base/text.ts';
import { fromHex, toHex } from '../../core/base/hex.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { Random } from '../support/random.ts';
import { append, fill, openProven, recordsIn, scavenge } from './proof-kit.ts';

const sha256 = sha256By(nodeDigests);

describe('the tree', () => {
  it('has the roots of RFC 6962, whose leaves are hashed already here', () => {
    // The test vectors of the RFC's reference implementation, from their leaf hashes on.
    const inputs = ['', '00', '10', '2021', '3031', '40414243', '5051525354555657', '606162636465666768696a6b6c6d6e6f'];
    const roots: Record<number, string> = {
      0: 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
      1: '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d',
      2: 'fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125',
      3: 'aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77',
      7: 'ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c',
      8: '5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328',
    };
    for (const [count, root] of Object.entries(roots)) {
      const tree = new Tree(sha256);
      for (const input of inputs.slice(0, Number(count))) tree.add(sha256(Uint8Array.of(0), fromHex(input)!));
      expect(toHex(tree.root())).toBe(root);
    }
  });

  it('gives a path to each leaf whose length is at most the logarithm', () => {
    const leaves = Array.from({ length: 21 }, (_, i) => sha256(Uint8Array.of(i)));
    expect(leaves.map((_, i) => inclusionPath(sha256, leaves, i).length)).toEqual([
      ...Array(16).fill(5),
      ...Array(4).fill(4),
      2,
    ]);
  });
});

describe('the proof of one event', () => {
  it('holds for every record, before and behind a scavenge, and for no record with a bit changed', async () => {
    const storage = new MemoryStorage();
    const open = await openProven(storage);
    const random = new Random(21);
    await fill(open, random, 700);
    const early = await open.hashChain!.anchor();
    await append(open, 'paid', encodeText('100 crowns'), 'payment');
    const [event] = (await open.store.readStream('paid', { direction: 'forward', from: 0, count: 1 })).events;
    await expect(open.hashChain!.prove(early, event!.preparePosition)).rejects.toMatchObject({ code: 'proof_invalid' });
    await scavenge(open);
    const anchor = await open.hashChain!.anchor();
    const proof = await open.hashChain!.prove(anchor, event!.preparePosition);
    const { wrong, event: proven } = verifyEvent(parseEventProof(JSON.stringify(proof), 'x'), anchor, nodeDigests);
    expect(wrong).toBeNull();
    expect(proven).toMatchObject({ stream: 'paid', eventType: 'payment', expectedVersion: -1 });
    expect(decodeText(proven!.data)).toBe('100 crowns');
    expect(verifyEvent(proof, early, nodeDigests).wrong).toContain('--anchor');

    const records = await recordsIn(storage, early.position);
    for (const { position } of records.filter((_, i) => i % 25 === 0)) {
      const each = await open.hashChain!.prove(early, position);
      expect(verifyEvent(each, early, nodeDigests).wrong).toBeNull();
      const bytes = Buffer.from(each.record, 'base64');
      const bit = random.int(0, bytes.length * 8 - 1);
      bytes[bit >> 3]! ^= 1 << (bit & 7);
      expect(verifyEvent({ ...each, record: bytes.toString('base64') }, early, nodeDigests).wrong).not.toBeNull();
      expect(verifyEvent({ ...each, index: each.index ^ 1 }, early, nodeDigests).wrong).not.toBeNull();
    }
    await expect(open.hashChain!.prove(early, records[3]!.position + 1)).rejects.toMatchObject({
      code: 'event_not_found',
    });
    await open.close();
  });

  it('refuses what is no proof', () => {
    for (const text of ['', '{}', 'null', '{"format":"skua event proof 1"}', '[1]'])
      expect(() => parseEventProof(text, 'the file')).toThrowError(expect.objectContaining({ code: 'proof_invalid' }));
  });
});
