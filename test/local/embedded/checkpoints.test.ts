import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openStore } from '../../../local/embedded/index.ts';
import type { Checkpoint, OpenStoreOptions, RecordedEvent, Store } from '../../../local/embedded/index.ts';

/** Which checkpoints a log knows for its own, over real directories and a bucket of files. */

let folder: string;
let folders = 0;
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'skua-checkpoints-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));
const newFolder = () => path.join(folder, String(++folders));

async function during<T>(place: OpenStoreOptions, work: (store: Store) => Promise<T>): Promise<T> {
  const store = await openStore(place);
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

async function lastOf(store: Store): Promise<RecordedEvent> {
  for await (const event of store.readAll({ direction: 'backward', limit: 1 })) return event;
  throw new Error('the log is empty');
}

async function checkpointAtEnd(store: Store, after?: Checkpoint): Promise<Checkpoint> {
  const { position, id } = await lastOf(store);
  const { checkpoint } = await store.checkpoint({ position, id, ...(after !== undefined && { after }) });
  return JSON.parse(JSON.stringify(checkpoint)) as Checkpoint;
}

const whyNot = (store: Store, after: Checkpoint) =>
  store.checkpoint({ after }).then(
    () => null,
    (error: { readonly code: string; readonly data: { readonly why: string } }) => {
      expect(error.code).toBe('checkpoint_unknown');
      return error.data.why;
    },
  );

const grown = async (store: Store, count: number, stream = 'a') => {
  for (let i = 0; i < count; i++) await store.append(stream, { type: 'Counted', data: { i } });
};

const PLACES = [
  ['directory', (at: string): OpenStoreOptions => ({ directory: at, chunkBytes: 1_048_576 })],
  ['bucket', (at: string): OpenStoreOptions => ({ bucket: at, chunkBytes: 1_048_576 })],
] as const;

describe.each(PLACES)('a log in a %s', (kind, place) => {
  test('knows its checkpoints: at once, after more events, opened again, in a copy, deleted, scavenged', async () => {
    const at = newFolder();
    const checkpoint = await during(place(at), async (store) => {
      await grown(store, 5, 'gone');
      const made = await checkpointAtEnd(store);
      expect(JSON.stringify(made).length).toBeLessThan(400);
      expect(await whyNot(store, made)).toBeNull();
      await grown(store, 5);
      expect(await whyNot(store, made)).toBeNull();
      expect((await checkpointAtEnd(store, made)).position.commit).toBeGreaterThan(made.position.commit);
      return made;
    });
    await cp(at, `${at}-copy`, { recursive: true });
    for (const each of [at, `${at}-copy`])
      await during(place(each), async (store) => {
        expect(await whyNot(store, checkpoint)).toBeNull();
        await grown(store, 1);
        expect(await whyNot(store, checkpoint)).toBeNull();
        await store.delete('gone', { hard: true });
        await store.scavenge();
        expect(await whyNot(store, checkpoint)).toBeNull();
        const same = (await store.checkpoint({ after: checkpoint })).checkpoint;
        expect(same).toEqual(checkpoint);
      });
  }, 60_000);

  test('does not know those of another log, or from beyond its end', async () => {
    const [one, other] = [newFolder(), newFolder()];
    const [early, late] = await during(place(one), async (store) => {
      await grown(store, 3);
      const first = await checkpointAtEnd(store);
      await grown(store, 50);
      return [first, await checkpointAtEnd(store, first)];
    });
    await during(place(other), async (store) => {
      await grown(store, 10);
      expect(await whyNot(store, early)).toMatch(/^another event is there than |^no record begins there$/);
      expect(await whyNot(store, late)).toMatch(/^the log ends at \d+$/);
    });
  });

  test('does not know one from what a restore has lost, however far the log has grown since, and scavenged', async () => {
    const at = newFolder();
    const before = await during(place(at), async (store) => {
      await grown(store, 10);
      return checkpointAtEnd(store);
    });
    await cp(at, `${at}-backup`, { recursive: true });
    const lost = await during(place(at), async (store) => {
      const made: Checkpoint[] = [];
      for (let i = 0; i < 10; i++) {
        await grown(store, 1, 'gone');
        made.push(await checkpointAtEnd(store, made.at(-1)));
      }
      return made;
    });
    const restored = place(`${at}-backup`);
    await during(restored, async (store) => {
      for (const each of lost.slice(1)) expect(await whyNot(store, each)).toMatch(/^the log ends at/);
      expect(await whyNot(store, before)).toBeNull();
      await grown(store, 30, 'gone');
      for (const each of lost) expect(await whyNot(store, each)).not.toBeNull();
      expect(await whyNot(store, before)).toBeNull();
    });
    if (kind === 'bucket') return;
    await during(restored, async (store) => {
      await store.delete('gone', { hard: true });
      await store.scavenge();
      expect(await Promise.all(lost.map((each) => whyNot(store, each)))).toEqual(
        lost.map(() => expect.stringMatching(/put back and written to since/)),
      );
      expect(await whyNot(store, before)).toBeNull();
    });
  }, 60_000);
});

test('a checkpoint is made for the event that was seen, and for none before the last one', async () => {
  await during({ memory: true }, async (store) => {
    expect((await store.checkpoint()).checkpoint).not.toBeNull();
    await grown(store, 2);
    const events: RecordedEvent[] = [];
    for await (const event of store.read('a')) events.push(event);
    const [first, second] = events;
    const at = await store.checkpoint({ position: first!.position, id: first!.id });
    expect(at.checkpoint).toMatchObject({ position: first!.position, id: first!.id, log: null });
    expect(at.end).toBeGreaterThan(second!.position.commit);
    await expect(store.checkpoint({ position: first!.position, id: second!.id })).rejects.toMatchObject({
      code: 'checkpoint_unknown',
    });
    const inside = { commit: first!.position.commit + 1, prepare: first!.position.commit + 1 };
    await expect(store.checkpoint({ position: inside })).rejects.toMatchObject({ code: 'checkpoint_unknown' });
    const { checkpoint } = await store.checkpoint({ position: second!.position });
    expect(checkpoint!.id).toBe(second!.id);
    await expect(store.checkpoint({ position: first!.position, after: checkpoint! })).rejects.toMatchObject({
      code: 'bad_option',
    });
    for (const bad of [{ position: 1 }, { id: 'x' }, { after: {} }, { position: { commit: -1, prepare: 0 } }])
      await expect(store.checkpoint(bad as never)).rejects.toMatchObject({ code: 'bad_option' });
  });
});

test('among many epochs each checkpoint has its own', async () => {
  const at = newFolder();
  const made: Checkpoint[] = [];
  for (let i = 0; i < 9; i++)
    await during({ directory: at, chunkBytes: 1_048_576 }, async (store) => {
      await grown(store, 1);
      made.push(await checkpointAtEnd(store, made.at(-1)));
    });
  expect(made.map(({ epoch }) => epoch!.number)).toEqual(made.map((_, i) => i));
  await during({ directory: at, chunkBytes: 1_048_576 }, async (store) => {
    for (const each of made) expect((await store.checkpoint({ after: each })).checkpoint).toEqual(each);
    // Of another epoch.
    for (const [i, each] of made.entries())
      expect(await whyNot(store, { ...each, epoch: made[(i + 1) % 9]!.epoch })).toMatch(/^the log has been put back/);
  });
});
