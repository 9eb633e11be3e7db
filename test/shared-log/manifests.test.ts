import { describe, expect, test } from 'vitest';
import { openObjectStore } from '../../core/shared-log/shared-log.ts';
import { openPrefix } from '../../core/shared-log/prefix/prefix.ts';
import { manifestKey } from '../../core/shared-log/format/object-keys.ts';
import {
  createManifest,
  decodeManifest,
  encodeManifest,
  newestManifest,
  newestManifestNumber,
  readManifest,
} from '../../core/shared-log/format/manifest.ts';
import type { ObjectManifest } from '../../core/shared-log/format/manifest.ts';
import { CountingObjects } from '../support/counting-objects.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { FaultyObjects } from '../support/faulty-objects.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { Random } from '../support/random.ts';
import { worldOf } from './setup.ts';

const MANIFEST: ObjectManifest = {
  format: 1,
  number: 1,
  storeId: '3b241101-e2bb-4255-8caf-4136c566a962',
  writtenMs: 5,
  chunkSizeBytes: 65_536,
  boundary: 1,
  logEnd: 0,
  endsChunk: false,
  chunks: [],
  ongoing: null,
  files: [],
  dropped: [],
  scavenge: null,
};
const numbered = (number: number): ObjectManifest => ({ ...MANIFEST, number });
const CHUNK = {
  name: 'chunk-000000.000000',
  key: 'files/00000000-0000-4000-8000-00000000000a',
  sizeBytes: 4_096,
  startNumber: 0,
  endNumber: 0,
  isScavenged: false,
  physicalBytes: 10,
  logicalBytes: 10,
  mapBytes: 0,
  mapEntryBytes: 12,
};
const ONGOING = {
  name: 'chunk-000000.000000',
  number: 0,
  header: '00'.repeat(128),
  segments: [{ key: 'files/00000000-0000-4000-8000-00000000000e', from: 0, to: 20 }],
};

const MARKS = { name: 'redactions', key: 'files/00000000-0000-4000-8000-000000000010', sizeBytes: 9 };
const ATTRIBUTE_MAP = { name: 'attributes/names/indexmap', key: null, sizeBytes: 2, inline: 'aGE=' };
const ATTRIBUTE_TABLE = {
  name: 'attributes/names/3b241101-e2bb-4255-8caf-4136c566a962',
  key: 'files/00000000-0000-4000-8000-000000000011',
  sizeBytes: 9,
};

describe('a manifest', () => {
  test('comes back from its text', () => {
    const full: ObjectManifest = {
      ...numbered(9),
      boundary: 12,
      logEnd: 65_636,
      chunks: [CHUNK],
      ongoing: {
        name: 'chunk-000001.000000',
        number: 1,
        header: '00'.repeat(128),
        segments: [
          { key: 'files/00000000-0000-4000-8000-00000000000b', from: 65_536, to: 65_600 },
          { key: 'files/00000000-0000-4000-8000-00000000000c', from: 65_600, to: 65_636 },
        ],
      },
      files: [{ name: 'index/indexmap', key: null, sizeBytes: 2, inline: 'aGE=' }],
      dropped: [{ key: 'files/00000000-0000-4000-8000-00000000000d', droppedMs: 3 }],
      scavenge: null,
    };
    expect(decodeManifest('k', 9, encodeManifest(full, nodeDigests), nodeDigests)).toEqual(full);
  });

  test('with tables of attribute indexes keeps everything, with marks of redaction and without', () => {
    for (const marks of [[], [MARKS]]) {
      const full: ObjectManifest = {
        ...MANIFEST,
        format: 3,
        files: [
          ...marks,
          ATTRIBUTE_MAP,
          ATTRIBUTE_TABLE,
          { ...ATTRIBUTE_TABLE, name: `${ATTRIBUTE_TABLE.name}.bloomfilter` },
        ],
        attributes: { names: { coveredTo: 0 }, tags: { coveredTo: 0 } },
      };
      expect(decodeManifest('k', 1, encodeManifest(full, nodeDigests), nodeDigests)).toEqual(full);
    }
  });

  test('of an older format has what an older program wrote there', () => {
    const old: ObjectManifest = { ...MANIFEST, attributes: { names: { coveredTo: 0 } } };
    expect(decodeManifest('k', 1, encodeManifest(old, nodeDigests), nodeDigests)).toEqual(old);
  });

  test('no changed byte and no cut goes unnoticed', () => {
    const bytes = encodeManifest(MANIFEST, nodeDigests);
    for (let at = 0; at < bytes.length; at++) {
      const changed = bytes.slice();
      changed[at]! ^= 1;
      expect(() => decodeManifest('k', 1, changed, nodeDigests), `byte ${at}`).toThrow(
        expect.objectContaining({ code: 'manifest_invalid', data: { key: 'k' } }),
      );
      expect(() => decodeManifest('k', 1, bytes.subarray(0, at), nodeDigests)).toThrow(
        expect.objectContaining({ code: 'manifest_invalid' }),
      );
    }
  });

  test.each<[string, Partial<ObjectManifest>]>([
    ['number', { number: 2 }],
    ['boundary', { boundary: 0 }],
    ['logEnd', { logEnd: -1 }],
    ['chunkSizeBytes', { chunkSizeBytes: 0 }],
    ['format 4', { format: 4 as 1 }],
    ['tables of attribute indexes for its format', { format: 3 }],
    ...(
      [
        ['tables of attribute indexes for its format', { format: 2, files: [MARKS, ATTRIBUTE_MAP, ATTRIBUTE_TABLE] }],
        ['tables of attribute indexes for its format', { format: 1, files: [ATTRIBUTE_MAP, ATTRIBUTE_TABLE] }],
        ['map for the tables of attributes/names', { format: 3, files: [ATTRIBUTE_TABLE] }],
        ['object for the index table', { format: 3, files: [ATTRIBUTE_MAP, { ...ATTRIBUTE_TABLE, key: null }] }],
        ['index for the file attributes/names', { format: 3, files: [ATTRIBUTE_MAP, ATTRIBUTE_TABLE], attributes: {} }],
        ['index for the file attributes/names', { format: 1, files: [ATTRIBUTE_MAP], attributes: undefined as never }],
        ['map for the tables of attributes/names', { format: 1, files: [ATTRIBUTE_MAP] }],
        ['end for the index attributes/tags', { format: 1, attributes: { tags: { coveredTo: 1 } } }],
        ['attributes.tags.coveredTo', { format: 1, attributes: { tags: { coveredTo: -1 } } }],
        [
          String.raw`files\[0\].name`,
          { format: 3, files: [{ ...ATTRIBUTE_TABLE, name: 'attributes/other/indexmap' }] },
        ],
      ] as [string, Partial<ObjectManifest>][]
    ).map(
      ([what, wrong]) =>
        [what, { attributes: { names: { coveredTo: 0 } }, ...wrong }] as [string, Partial<ObjectManifest>],
    ),
    ['place for the chunk', { chunks: [{ ...CHUNK, name: 'chunk-000001.000000', startNumber: 1, endNumber: 1 }] }],
    ['file for the end of the log', { logEnd: 5 }],
    [
      'order of segments',
      {
        logEnd: 20,
        ongoing: {
          ...ONGOING,
          segments: [
            { ...ONGOING.segments[0]!, to: 10 },
            { ...ONGOING.segments[0]!, from: 11 },
          ],
        },
      },
    ],
    ['logEnd', { logEnd: 21, ongoing: ONGOING }],
    // What could be planted in the directory of a member, taken for a commit, or removed as one of ours.
    ...[
      'session.key',
      '../x',
      'index/session.key',
      'index/scavenging/scavenging.db-wal',
      'chunk-000000.000000',
      '',
    ].map(
      (name) =>
        [String.raw`files\[0\].name`, { files: [{ name, key: ONGOING.segments[0]!.key, sizeBytes: 2 }] }] as [
          string,
          Partial<ObjectManifest>,
        ],
    ),
    ...['session.key', 'chunk-000001.000000', 'chunk-000000.000000.tmp', '../chunk-000000.000000'].map(
      (name) => ['chunk', { chunks: [{ ...CHUNK, name }] }] as [string, Partial<ObjectManifest>],
    ),
    ['chunks\\[0\\].key', { chunks: [{ ...CHUNK, key: 'log/00000000000000000001' }] }],
    ['ongoing.name', { ongoing: { ...ONGOING, name: 'session.key' } }],
    ['ongoing.header', { ongoing: { ...ONGOING, header: '' } }],
    ...['manifest/999999999999998', 'nodes/m_3a1', 'control/backup', '.DS_Store'].map(
      (gone) =>
        [String.raw`dropped\[0\].key`, { dropped: [{ key: gone, droppedMs: 1 }] }] as [string, Partial<ObjectManifest>],
    ),
    ['storeId', { storeId: '../x' }],
    ['chunks', { chunks: undefined as unknown as [] }],
    ['chunks', { chunks: null as unknown as [] }],
    ['scavenge.scavengeId', { scavenge: {} as NonNullable<ObjectManifest['scavenge']> }],
    [
      'object for the index table',
      { files: [{ name: 'index/3b241101-e2bb-4255-8caf-4136c566a962', key: null, sizeBytes: 2, inline: 'aGE=' }] },
    ],
  ])('with a wrong %s is refused', (what, wrong) => {
    expect(() => decodeManifest('k', 1, encodeManifest({ ...MANIFEST, ...wrong }, nodeDigests), nodeDigests)).toThrow(
      new RegExp(what),
    );
  });

  test('the newest one is found with two requests, however many there are', async () => {
    const counting = new CountingObjects(new MemoryObjects());
    const world = worldOf(counting);
    expect(await newestManifest(counting, nodeDigests)).toBeNull();
    for (let number = 1; number <= 12; number++) expect(await createManifest(world, numbered(number))).toBe('created');
    counting.reset();
    expect((await newestManifest(counting, nodeDigests))!.number).toBe(12);
    expect(counting.counts()).toMatchObject({ gets: 1, lists: 1, puts: 0 });
    expect(await newestManifestNumber(counting)).toBe(12);
    expect((await readManifest(counting, 3, nodeDigests))!.number).toBe(3);
    expect(await readManifest(counting, 99, nodeDigests)).toBeNull();
  });

  test('something else among the manifests is passed over, wherever it sorts', async () => {
    const objects = new MemoryObjects();
    const world = worldOf(objects);
    for (const name of [
      '.DS_Store',
      '._999999999999998',
      '0',
      '00000000000000',
      '0000000000000000',
      '999999999999998.tmp',
      'Thumbs.db',
      'desktop.ini',
      '.nfs00000001',
    ])
      await objects.put(`manifest/${name}`, new Uint8Array(1));
    expect(await newestManifest(objects, nodeDigests)).toBeNull();
    for (const number of [1, 2]) expect(await createManifest(world, numbered(number))).toBe('created');
    expect((await newestManifest(objects, nodeDigests))!.number).toBe(2);
    expect(await newestManifestNumber(objects)).toBe(2);
  });
});

describe('creating a manifest', () => {
  test('of several that take one number one wins', async () => {
    const world = worldOf(new MemoryObjects());
    const outcomes = await Promise.all([1, 2, 3].map((writtenMs) => createManifest(world, { ...MANIFEST, writtenMs })));
    expect(outcomes.filter((outcome) => outcome === 'created')).toHaveLength(1);
    expect(outcomes.filter((outcome) => outcome === 'lost')).toHaveLength(2);
  });

  test.each(['before', 'after'] as const)('a reply that was lost %s the effect is resolved', async (fault) => {
    const clock = new ManualClock();
    const objects = new FaultyObjects(new MemoryObjects());
    objects.faultAt(1, fault);
    const creating = createManifest(worldOf(objects, { clock }), MANIFEST);
    await clock.advance(1_000);
    expect(await creating).toBe('created');
    expect(await newestManifest(objects, nodeDigests)).toEqual(MANIFEST);
  });

  test('the loser of a lost reply knows that it lost', async () => {
    const clock = new ManualClock();
    const memory = new MemoryObjects();
    const objects = new FaultyObjects(memory);
    objects.faultAt(1, 'before');
    const creating = createManifest(worldOf(objects, { clock }), MANIFEST);
    await memory.create(manifestKey(1), encodeManifest({ ...MANIFEST, writtenMs: 6 }, nodeDigests));
    await clock.advance(1_000);
    expect(await creating).toBe('lost');
  });

  test('one that was told to be late is looked at until it is known who was first', async () => {
    const clock = new ManualClock();
    const late = new LateTwin();
    const objects = new FaultyObjects(late);
    objects.faultAt(2, 'before');
    const creating = createManifest(worldOf(objects, { clock }), MANIFEST);
    await clock.advance(1_000);
    expect(await creating).toBe('created');
  });

  test('one that was there and is gone since may have been ours, so that nobody discards its files', async () => {
    class Gone extends LateTwin {
      override async get(): Promise<null> {
        return null;
      }
    }
    await expect(createManifest(worldOf(new Gone()), MANIFEST)).rejects.toMatchObject({ code: 'outcome_unknown' });
  });

  test('gives up after its deadline, not knowing', async () => {
    const clock = new ManualClock();
    const objects = new FaultyObjects(new MemoryObjects());
    objects.faultWhen((op) => (op === 'create' ? 'before' : undefined));
    const creating = createManifest(worldOf(objects, { clock }), MANIFEST, 5_000);
    const expected = expect(creating).rejects.toMatchObject({ code: 'outcome_unknown' });
    await clock.advance(10_000);
    await expected;
  });
});

/**
 * Of every object whoever creates it first is told that it was there: below a network file system the reply was lost,
 * and its repeat found its own work.
 */
class LateTwin extends MemoryObjects {
  override async create(key: string, bytes: Uint8Array): Promise<'created' | 'exists'> {
    await super.create(key, bytes);
    return 'exists';
  }
}

/** A server that ignores the condition of some creates. */
class Careless extends MemoryObjects {
  readonly #ignores: () => boolean;
  constructor(ignores: () => boolean) {
    super();
    this.#ignores = ignores;
  }

  override async create(key: string, bytes: Uint8Array): Promise<'created' | 'exists'> {
    if (!this.#ignores()) return super.create(key, bytes);
    await this.put(key, bytes);
    return 'created';
  }
}

describe('a new prefix', () => {
  test('gets manifest 1, and keeps nothing of the probe', async () => {
    const objects = new MemoryObjects();
    const first = await openPrefix(worldOf(objects), { chunkSizeBytes: 131_072 });
    expect(first).toMatchObject({ number: 1, boundary: 1, logEnd: 0, chunkSizeBytes: 131_072 });
    expect((await objects.list('')).objects.map(({ key }) => key)).toEqual([manifestKey(1)]);
    expect(await openPrefix(worldOf(objects, { seed: 2 }), { chunkSizeBytes: 65_536 })).toEqual(first);
  });

  test('is one store, whoever opens it at once', async () => {
    const objects = new MemoryObjects();
    const opened = await Promise.all(
      Array.from({ length: 8 }, (_, i) => openPrefix(worldOf(objects, { seed: i + 1 }), {})),
    );
    expect(new Set(opened.map(({ storeId }) => storeId)).size).toBe(1);
  });

  test.each(['before', 'behind'] as const)(
    'is that of whoever has begun it meanwhile, also where his first manifest is swept %s our create',
    async (when) => {
      const objects = new MemoryObjects();
      const create = objects.create.bind(objects);
      const world = worldOf(objects, { seed: 2 });
      objects.create = async (key, bytes) => {
        if (key !== manifestKey(1)) return create(key, bytes);
        objects.create = create;
        for (const number of [1, 2]) await createManifest(world, numbered(number));
        if (when === 'before') await objects.remove([manifestKey(1)]);
        const outcome = await create(key, bytes);
        if (when === 'behind') await objects.remove([manifestKey(1)]);
        return outcome;
      };
      const opened = await openObjectStore(worldOf(objects, { seed: 1 }));
      expect(opened.chunkSizeBytes).toBe(MANIFEST.chunkSizeBytes);
      await opened.close();
    },
  );

  test('is refused on a server that ignores the condition, always or now and then', async () => {
    await expect(openPrefix(worldOf(new Careless(() => true)), {})).rejects.toMatchObject({
      code: 'prefix_unsuitable',
    });
    const random = new Random(3);
    await expect(openPrefix(worldOf(new Careless(() => random.chance(0.5))), {})).rejects.toMatchObject({
      code: 'prefix_unsuitable',
    });
    class Refusing extends MemoryObjects {
      override async create(): Promise<'exists'> {
        return 'exists';
      }
    }
    await expect(openPrefix(worldOf(new Refusing()), {})).rejects.toMatchObject({ code: 'prefix_unsuitable' });
  });

  test('is tried again where nobody was told that he won, though somebody did', async () => {
    let first: string | null = null;
    class OnceLate extends LateTwin {
      override async create(key: string, bytes: Uint8Array): Promise<'created' | 'exists'> {
        first ??= key;
        return key === first ? super.create(key, bytes) : MemoryObjects.prototype.create.call(this, key, bytes);
      }
    }
    expect((await openPrefix(worldOf(new OnceLate()), {})).number).toBe(1);
  });

  test('is not begun where there was a log', async () => {
    const objects = new MemoryObjects();
    await expect(openPrefix(worldOf(objects), { mustExist: true })).rejects.toMatchObject({
      code: 'storage_unreachable',
    });
    expect(objects.size).toBe(0);
  });

  test('is tried again where replies were lost, but not for ever', async () => {
    const objects = new FaultyObjects(new MemoryObjects());
    for (let n = 2; n <= 9; n++) objects.faultAt(n, 'before');
    expect((await openPrefix(worldOf(objects), {})).number).toBe(1);
    const dead = new FaultyObjects(new MemoryObjects());
    dead.faultWhen((op) => (op === 'create' ? 'before' : undefined));
    await expect(openPrefix(worldOf(dead), {})).rejects.toMatchObject({ code: 'storage_unreachable' });
  });

  test('with an impossible chunk size is refused before anything is written', async () => {
    const objects = new MemoryObjects();
    await expect(openPrefix(worldOf(objects), { chunkSizeBytes: 100 })).rejects.toMatchObject({ code: 'bad_option' });
    expect(objects.size).toBe(0);
  });
});
