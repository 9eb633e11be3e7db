import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { isSkuaError } from '../../core/base/errors.ts';
import { OBJECT_PUT_BYTES_MAX, listAll } from '../../core/ports/object-store.ts';
import type { ObjectStore } from '../../core/ports/object-store.ts';
import { Random } from '../support/random.ts';
import { IS_LONG_RUN } from '../support/run-size.ts';

export interface ObjectStoreUnderTest {
  readonly objects: ObjectStore;
  /** Another client of the same objects, as another process would have. */
  readonly other: ObjectStore;
  dispose(): Promise<void>;
}

const text = (value: string) => new TextEncoder().encode(value);
const bigBytes = 20 * 1_048_576 + 12_345;
let big: Uint8Array | null = null;
/** Made once: that takes longer than to store it. */
const bigContent = (): Uint8Array => (big ??= new Random(7).bytes(bigBytes));

async function* inPieces(bytes: Uint8Array, pieceBytes: number): AsyncGenerator<Uint8Array> {
  const piece = new Uint8Array(pieceBytes);
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    const part = bytes.subarray(at, at + pieceBytes);
    piece.set(part);
    yield piece.subarray(0, part.length);
    // Whoever kept the piece instead of its bytes gets these.
    piece.fill(0xee);
  }
}

async function codeOf(work: Promise<unknown>): Promise<string> {
  try {
    await work;
    return 'no error';
  } catch (error) {
    return isSkuaError(error) ? error.code : String(error);
  }
}

async function keysOf(objects: ObjectStore, prefix: string, max?: number): Promise<string[]> {
  const keys: string[] = [];
  for await (const { key } of listAll(objects, prefix, max === undefined ? {} : { max })) keys.push(key);
  return keys;
}

type Tools = () => ObjectStoreUnderTest;

/** What every implementation of ObjectStore must do: one suite for all. */
export function describeObjectStore(name: string, make: () => Promise<ObjectStoreUnderTest>): void {
  describe(`ObjectStore: ${name}`, () => {
    let under: ObjectStoreUnderTest;
    beforeEach(async () => {
      under = await make();
    });
    afterEach(() => under.dispose());
    const tools = () => under;
    readAndWrite(tools);
    creation(tools);
    uploads(tools);
    listings(tools);
    removal(tools);
    aborts(tools);
    keys(tools);
  });
}

function readAndWrite(tools: Tools): void {
  test('what was put is read by everybody, whole or in part', async () => {
    const { objects, other } = tools();
    await objects.put('a/b/c.bin', text('0123456789'));
    expect(await other.get('a/b/c.bin')).toEqual(text('0123456789'));
    expect(await other.get('a/b/c.bin', { from: 3 })).toEqual(text('3456789'));
    expect(await other.get('a/b/c.bin', { from: 3, length: 4 })).toEqual(text('3456'));
    expect(await other.get('a/b/c.bin', { length: 2 })).toEqual(text('01'));
    expect(await other.get('a/b/c.bin', { from: 8, length: 100 })).toEqual(text('89'));
    expect(await other.get('a/b/c.bin', { from: 10 })).toEqual(new Uint8Array(0));
    expect(await other.get('a/b/c.bin', { from: 11, length: 5 })).toEqual(new Uint8Array(0));
    expect(await other.get('a/b/c.bin', { from: 2, length: 0 })).toEqual(new Uint8Array(0));
  });

  test('memory that is lent for a part makes no difference to what is read', async () => {
    const { objects, other } = tools();
    await objects.put('a/b/c.bin', text('0123456789'));
    const part = (from: number, length: number) =>
      other.get('a/b/c.bin', { from, length, into: new Uint8Array(length + 3).fill(0xee) });
    expect(await part(3, 4)).toEqual(text('3456'));
    expect(await part(8, 100)).toEqual(text('89'));
    expect(await part(10, 1)).toEqual(new Uint8Array(0));
    expect(await part(2, 0)).toEqual(new Uint8Array(0));
    expect(await other.get('a/b', { from: 0, length: 4, into: new Uint8Array(4) })).toBeNull();
    expect(await other.get('a/d', { from: 0, length: 4, into: new Uint8Array(4) })).toBeNull();
  });

  test('an absent object is null, also under one that is there', async () => {
    const { objects } = tools();
    await objects.put('there', text('x'));
    for (const key of ['absent', 'there.not', 'no/such/folder', 'there/below']) {
      expect(await objects.get(key)).toBeNull();
      expect(await objects.get(key, { from: 5, length: 1 })).toBeNull();
      expect(await objects.get(key, { length: 0 })).toBeNull();
      expect(await objects.head(key)).toBeNull();
    }
  });

  test('an empty object is there', async () => {
    const { objects } = tools();
    await objects.put('empty', new Uint8Array(0));
    expect(await objects.get('empty')).toEqual(new Uint8Array(0));
    expect(await objects.head('empty')).toMatchObject({ key: 'empty', sizeBytes: 0 });
  });

  test('a put replaces what was there', async () => {
    const { objects, other } = tools();
    await objects.put('k', text('first, and longer'));
    await other.put('k', text('second'));
    expect(await objects.get('k')).toEqual(text('second'));
    expect(await objects.head('k')).toMatchObject({ sizeBytes: 6 });
  });

  test("bytes are the store's own: changing them afterwards changes no object", async () => {
    const { objects } = tools();
    const bytes = text('original');
    await objects.put('k', bytes);
    bytes.fill(0);
    (await objects.get('k'))!.fill(0);
    expect(await objects.get('k')).toEqual(text('original'));
  });

  test("head and list say the same, and the time is the store's", async () => {
    const { objects } = tools();
    await objects.put('k', text('abc'));
    const head = await objects.head('k');
    expect(head).toMatchObject({ key: 'k', sizeBytes: 3 });
    expect(head!.modifiedMs).toBeGreaterThan(0);
    const {
      objects: [listed],
    } = await objects.list('');
    expect(listed).toMatchObject({ key: 'k', sizeBytes: 3 });
    // Servers give whole seconds in one of the two.
    expect(Math.abs(listed!.modifiedMs - head!.modifiedMs)).toBeLessThan(1_000);
  });
}

function creation(tools: Tools): void {
  test('an object is created once', async () => {
    const { objects, other } = tools();
    expect(await objects.create('log/00000000000000000001', text('mine'))).toBe('created');
    expect(await other.create('log/00000000000000000001', text('yours'))).toBe('exists');
    expect(await objects.create('log/00000000000000000001', text('mine'))).toBe('exists');
    expect(await other.get('log/00000000000000000001')).toEqual(text('mine'));
  });

  test('of 32 that create the same key at the same time exactly one wins, and its bytes are there', async () => {
    const { objects, other } = tools();
    for (let round = 0; round < 5; round++) {
      const key = `race/${round}`;
      const results = await Promise.all(
        Array.from({ length: 32 }, async (_, n) => ({
          n,
          result: await createSurely(n % 2 === 0 ? objects : other, key, text(`writer ${n}`)),
        })),
      );
      const winners = results.filter(({ result }) => result === 'created');
      expect(winners).toHaveLength(1);
      expect(await other.get(key)).toEqual(text(`writer ${winners[0]!.n}`));
    }
  });

  test('a key is free again after its object was removed', async () => {
    const { objects, other } = tools();
    await objects.create('k', text('1'));
    await other.remove(['k']);
    expect(await objects.create('k', text('2'))).toBe('created');
  });
}

/**
 * As a writer that needs to know: the bytes are put there again, and when the key is taken they tell whose they are.
 */
async function createSurely(objects: ObjectStore, key: string, bytes: Uint8Array): Promise<'created' | 'exists'> {
  for (let isRepeat = false; ; isRepeat = true) {
    try {
      const result = await objects.create(key, bytes);
      if (result === 'created' || !isRepeat) return result;
      const found = await objects.get(key);
      return found !== null && Buffer.compare(found, bytes) === 0 ? 'created' : 'exists';
    } catch (error) {
      if (!isSkuaError(error, 'outcome_unknown')) throw error;
    }
  }
}

function uploads(tools: Tools): void {
  test('large content arrives as it was, whatever pieces it came in', async () => {
    const { objects, other } = tools();
    const bytes = bigContent();
    for (const pieceBytes of [1_000_003, bigBytes]) {
      await objects.upload('big/object.bin', bytes.length, inPieces(bytes, pieceBytes));
      expect(Buffer.compare((await other.get('big/object.bin'))!, bytes)).toBe(0);
    }
    expect(await other.get('big/object.bin', { from: 16_777_000, length: 500 })).toEqual(
      bytes.subarray(16_777_000, 16_777_500),
    );
    expect(await other.head('big/object.bin')).toMatchObject({ sizeBytes: bigBytes });
  });

  test('content in small and large pieces by turns arrives as it was', async () => {
    const { objects, other } = tools();
    const random = new Random(8);
    const bytes = random.bytes(3_000_000);
    async function* mixed(): AsyncGenerator<Uint8Array> {
      for (let at = 0; at < bytes.length;) {
        const piece = bytes.slice(
          at,
          at + (random.int(0, 1) === 0 ? random.int(1, 5_000) : random.int(131_000, 400_000)),
        );
        at += piece.length;
        yield piece;
        piece.fill(0xee);
      }
    }
    await objects.upload('mixed', bytes.length, mixed());
    expect(Buffer.compare((await other.get('mixed'))!, bytes)).toBe(0);
  });

  test('small and empty content too', async () => {
    const { objects } = tools();
    await objects.upload('small', 5, inPieces(text('12345'), 2));
    await objects.upload('none', 0, inPieces(new Uint8Array(0), 1));
    expect(await objects.get('small')).toEqual(text('12345'));
    expect(await objects.get('none')).toEqual(new Uint8Array(0));
  });

  test('content that is shorter or longer than announced leaves what was there', async () => {
    const { objects } = tools();
    await objects.put('k', text('before'));
    for (const size of [4, 6, bigBytes]) {
      expect(await codeOf(objects.upload('k', size, inPieces(text('12345'), 2)))).toBe('io_error');
    }
    const large = new Uint8Array(bigBytes);
    expect(await codeOf(objects.upload('k', bigBytes - 1, inPieces(large, 1_048_576)))).toBe('io_error');
    expect(await objects.get('k')).toEqual(text('before'));
    expect(await keysOf(objects, '')).toEqual(['k']);
  });

  test('content that fails leaves nothing, and its error comes through', async () => {
    const { objects } = tools();
    for (const good of [1_000, 17 * 1_048_576]) {
      const failing = async function* () {
        yield new Uint8Array(good);
        throw new RangeError('the source is broken');
      };
      await expect(objects.upload('k', bigBytes, failing())).rejects.toThrow(/the source is broken/);
    }
    expect(await keysOf(objects, '')).toEqual([]);
  });
}

function listings(tools: Tools): void {
  // In the order of code units, in which `-` and `.` come before `/`, and `/` before digits and letters.
  const sorted = ['A', 'a', 'a-b', 'a.b', 'a0/x', 'aB', 'a_b', 'ab', 'b/c/d', 'b/c-d', 'b/c/e', 'b-', 'z'].sort();

  test('keys come in the order of code units, with prefix, page after page', async () => {
    const { objects, other } = tools();
    for (const key of sorted.toReversed()) await objects.put(key, text(key));
    for (const max of [undefined, 1, 2, 5, 13]) expect(await keysOf(other, '', max)).toEqual(sorted);
    for (const prefix of ['a', 'b/', 'b/c', 'b/c/', 'b/c/d', 'zz', 'A', 'b-']) {
      expect(await keysOf(other, prefix, 2)).toEqual(sorted.filter((key) => key.startsWith(prefix)));
    }
  });

  test('a page says whether there are more', async () => {
    const { objects } = tools();
    for (const key of ['k/1', 'k/2', 'k/3', 'l']) await objects.put(key, text(key));
    const first = await objects.list('k/', { max: 2 });
    expect(first.objects.map(({ key }) => key)).toEqual(['k/1', 'k/2']);
    expect(first.isMore).toBe(true);
    const last = await objects.list('k/', { max: 2, after: 'k/2' });
    expect(last.objects.map(({ key }) => key)).toEqual(['k/3']);
    expect(last.isMore).toBe(false);
    expect(await objects.list('k/', { max: 3 })).toMatchObject({ isMore: false });
    expect(await objects.list('m/')).toEqual({ objects: [], isMore: false });
  });

  test('a page begins behind any text, whether a key or not', async () => {
    const { objects } = tools();
    for (const key of sorted) await objects.put(key, text(key));
    for (const after of ['0', 'a', 'a/', 'a0', 'b/c', 'b/c/d', 'b/c/dd', 'b/d', 'zz']) {
      const { objects: found } = await objects.list('', { after });
      expect(found.map(({ key }) => key)).toEqual(sorted.filter((key) => key > after));
    }
    expect((await objects.list('b/', { after: 'a' })).objects.map(({ key }) => key)).toEqual([
      'b/c-d',
      'b/c/d',
      'b/c/e',
    ]);
    expect((await objects.list('a', { after: 'b' })).objects).toEqual([]);
  });

  if (IS_LONG_RUN)
    test('more than one page of the greatest length', async () => {
      const { objects } = tools();
      const keys = Array.from({ length: 1_100 }, (_, n) => `n/${String(n).padStart(6, '0')}`);
      for (let at = 0; at < keys.length; at += 50)
        await Promise.all(keys.slice(at, at + 50).map((key) => objects.put(key, text(key))));
      const first = await objects.list('n/', { max: 5_000 });
      expect(first.objects).toHaveLength(1_000);
      expect(first.isMore).toBe(true);
      expect(await keysOf(objects, 'n/')).toEqual(keys);
      await objects.remove(keys);
      expect(await keysOf(objects, '')).toEqual([]);
    });
}

function removal(tools: Tools): void {
  test('objects are removed, one or many, and absent ones are no error', async () => {
    const { objects, other } = tools();
    for (const key of ['a', 'b/1', 'b/2', 'b/3']) await objects.put(key, text(key));
    await other.remove(['b/2']);
    expect(await objects.get('b/2')).toBeNull();
    await other.remove(['a', 'b/2', 'b/3', 'never/there', 'b/1/below']);
    expect(await keysOf(objects, '')).toEqual(['b/1']);
    await other.remove([]);
    await other.remove(['never']);
    expect(await keysOf(objects, '')).toEqual(['b/1']);
  });
}

function aborts(tools: Tools): void {
  test('nothing is begun for a signal that has aborted', async () => {
    const { objects } = tools();
    const signal = AbortSignal.abort();
    expect(await codeOf(objects.get('k', { signal }))).toBe('aborted');
    expect(await codeOf(objects.head('k', signal))).toBe('aborted');
    expect(await codeOf(objects.list('', { signal }))).toBe('aborted');
    expect(await codeOf(objects.put('k', text('x'), signal))).toBe('aborted');
    expect(await codeOf(objects.create('k', text('x'), signal))).toBe('aborted');
    expect(await codeOf(objects.upload('k', 1, inPieces(text('x'), 1), signal))).toBe('aborted');
    expect(await codeOf(objects.remove(['k'], signal))).toBe('aborted');
    expect(await keysOf(objects, '')).toEqual([]);
  });

  test('an upload that is aborted in its middle leaves nothing', async () => {
    const { objects } = tools();
    const ending = new AbortController();
    const content = async function* () {
      for (let n = 0; n < 20; n++) {
        if (n === 18) ending.abort();
        yield new Uint8Array(1_048_576);
      }
    };
    expect(await codeOf(objects.upload('k', 20 * 1_048_576, content(), ending.signal))).toBe('aborted');
    expect(await keysOf(objects, '')).toEqual([]);
  });
}

function keys(tools: Tools): void {
  test('every key of the grammar works', async () => {
    const { objects, other } = tools();
    const odd = [
      '.hidden',
      '..two',
      'a..b/...',
      '-',
      '_',
      '-x/--y',
      'x.tmp',
      'dir/.tmp/x',
      'UPPER',
      'upper',
      `${'p'.repeat(255)}/${'q'.repeat(255)}`,
      Array.from({ length: 100 }, () => 'd').join('/'),
    ];
    for (const key of odd) await objects.put(key, text(key));
    for (const key of odd) expect(await other.get(key)).toEqual(text(key));
    expect(await keysOf(other, '', 3)).toEqual(odd.toSorted());
    await other.remove(odd);
    expect(await keysOf(objects, '')).toEqual([]);
  });

  test('what is no key is refused by every call', async () => {
    const { objects } = tools();
    for (const key of [
      '',
      '/',
      '/a',
      'a/',
      'a//b',
      '.',
      '..',
      'a/../b',
      '../a',
      './a',
      'a b',
      'ä',
      'a\\b',
      'a\0',
      '.tmp/x',
      'k'.repeat(256),
      'a/'.repeat(256) + 'a',
    ]) {
      expect(await codeOf(objects.get(key))).toBe('io_error');
      expect(await codeOf(objects.head(key))).toBe('io_error');
      expect(await codeOf(objects.put(key, text('x')))).toBe('io_error');
      expect(await codeOf(objects.create(key, text('x')))).toBe('io_error');
      expect(await codeOf(objects.upload(key, 1, inPieces(text('x'), 1)))).toBe('io_error');
      expect(await codeOf(objects.remove([key]))).toBe('io_error');
    }
    for (const prefix of ['/', '../', 'a/../', 'a//', 'ü']) expect(await codeOf(objects.list(prefix))).toBe('io_error');
  });

  test('what is too large for one write is refused', async () => {
    const { objects } = tools();
    const bytes = new Uint8Array(OBJECT_PUT_BYTES_MAX + 1);
    expect(await codeOf(objects.put('k', bytes))).toBe('io_error');
    expect(await codeOf(objects.create('k', bytes))).toBe('io_error');
  });
}
