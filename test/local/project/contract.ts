import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openStore } from '../../../local/embedded/index.ts';
import type { Store } from '../../../local/embedded/index.ts';
import type { Model, ProjectionOptions, RecordedEvent } from '../../../local/project/api.ts';
import { project } from '../../../local/project/index.ts';
import { Projecting } from '../../../local/project/projection.ts';
import { systemWorld } from '../../../local/project/world.ts';

/** What a kind of model is tested by: a table of what was seen, in a database that several connections may have. */
export interface Kit<Tx> {
  /** A model over a connection of its own, to the database that is the same within a test. */
  open(): Promise<Model<Tx>>;
  /** Makes the table. Called twice it fails. */
  init(tx: Tx): void | Promise<void>;
  /** Fails for a line that is there. */
  add(tx: Tx, line: string): unknown;
  /** What is committed, in the order in which it was added. */
  lines(): Promise<readonly string[]>;
  /** An empty database for the next test. */
  reset(): Promise<void>;
}

export interface ContractOptions {
  /** Several instances share the database. */
  readonly isShared: boolean;
}

async function until(isDone: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isDone())) await systemWorld.turn();
}

const lineOf = ({ stream, version }: RecordedEvent) => `${stream}@${version}`;

/** Calls back behind each commit. */
function watched<Tx>(model: Model<Tx>, onCommit: () => void | Promise<void>): Model<Tx> {
  return {
    ...(model.batchEvents !== undefined && { batchEvents: model.batchEvents }),
    load: (name) => model.load(name),
    commit: async (name, previous, work) => {
      const isDone = await model.commit(name, previous, work);
      await onCommit();
      return isDone;
    },
  };
}

export function modelTests<Tx>(kind: string, kit: Kit<Tx>, { isShared }: ContractOptions): void {
  describe(`projections into ${kind}`, () => {
    let folder: string;
    let store: Store;
    beforeAll(async () => {
      folder = await mkdtemp(path.join(tmpdir(), 'skua-project-'));
    });
    afterAll(() => rm(folder, { recursive: true, force: true }));

    /** A store and an empty database. */
    const fresh = async () => {
      await kit.reset();
      store = await openStore({ memory: true, chunkBytes: 1_048_576 });
    };
    const during = (name: string, work: () => Promise<void>) =>
      test(name, async () => {
        await fresh();
        try {
          await work();
        } finally {
          await store.close();
        }
      });
    const grown = async (count: number, stream: string, type = 'Counted') => {
      for (let i = 0; i < count; i++) await store.append(stream, { type, data: { i } });
    };
    const options = (
      model: Model<Tx>,
      more: Partial<ProjectionOptions<Tx, RecordedEvent>> = {},
    ): ProjectionOptions<Tx, RecordedEvent> => ({
      name: 'lines',
      store: model,
      init: (tx) => kit.init(tx),
      on: { Counted: (tx, event) => kit.add(tx, lineOf(event)) },
      ...more,
    });
    const all = async (wanted: (event: RecordedEvent) => boolean = () => true) => {
      const lines: string[] = [];
      for await (const event of store.readAll()) if (wanted(event)) lines.push(lineOf(event));
      return lines;
    };

    during('hold every event once and in order: what there was, and what comes', async () => {
      await grown(700, 'a-1');
      await grown(3, 'b-1');
      const stop = new AbortController();
      const projection = project(store, options(await kit.open()));
      expect(projection.status()).toEqual({
        name: 'lines',
        state: 'stopped',
        checkpoint: null,
        isCaughtUp: false,
        behindBytes: null,
        lastEventAt: null,
        events: 0,
      });
      const running = projection.run({ signal: stop.signal });
      await expect(projection.run()).rejects.toMatchObject({ code: 'projection_running' });
      await Promise.all([grown(40, 'a-2'), grown(40, 'a-3')]);
      running.catch(() => stop.abort());
      await until(() => stop.signal.aborted || projection.status().events === 783);
      await until(() => stop.signal.aborted || projection.status().state === 'live');
      await grown(1, 'a-4');
      await until(() => stop.signal.aborted || projection.status().events === 784);
      await grown(1, 'a-4');
      stop.abort();
      await running;
      expect(projection.status()).toMatchObject({ state: 'stopped' });
      const { isCaughtUp, behindBytes, checkpoint } = await projection.catchUp();
      expect([isCaughtUp, behindBytes]).toEqual([true, 0]);
      expect(await kit.lines()).toEqual(await all());
      expect((await store.checkpoint({ after: checkpoint! })).checkpoint).toEqual(checkpoint);
    });

    during('read what a filter names: category, types, correlation, tags, one stream, prefixes', async () => {
      const metadata = { $correlationId: 'c-1', $tags: ['red'] };
      await grown(2, 'a-1');
      await grown(2, 'b-1');
      await store.append('a-2', [
        { type: 'Counted', metadata },
        { type: 'Other', metadata },
      ]);
      await store.append('b-1', { type: 'Counted', metadata });
      const cases = [
        [{ category: 'a' }, (e: RecordedEvent) => e.stream.startsWith('a-') && e.type === 'Counted'],
        [{ correlation: 'c-1' }, (e: RecordedEvent) => e.metadata !== undefined && e.type === 'Counted'],
        [{ tags: ['red'], category: 'b' }, (e: RecordedEvent) => e.metadata !== undefined && e.stream === 'b-1'],
        [{ stream: 'b-1' }, (e: RecordedEvent) => e.stream === 'b-1'],
        [{ filter: { on: 'stream', prefixes: ['a-2'] } }, (e: RecordedEvent) => lineOf(e) === 'a-2@0'],
        [{ types: ['Other'] }, () => false],
        [{ items: [{ tags: ['red'] }] }, (e: RecordedEvent) => e.metadata !== undefined && e.type === 'Counted'],
      ] as const;
      for (const [filter, wanted] of cases) {
        await kit.reset();
        const projection = project(store, options(await kit.open(), { filter }));
        await projection.catchUp();
        expect(await kit.lines(), JSON.stringify(filter)).toEqual(await all(wanted));
        await grown(1, 'b-1');
        await projection.catchUp();
        expect(await kit.lines(), JSON.stringify(filter)).toEqual(await all(wanted));
      }
    });

    during('stop at a handler that fails: what came before is kept, nothing of the event, and it goes on', async () => {
      await grown(30, 'a-1');
      let isBroken = true;
      const on = {
        Counted: async (tx: Tx, event: RecordedEvent) => {
          await kit.add(tx, lineOf(event));
          if (isBroken && event.version === 17) throw new Error('No such customer.');
        },
      };
      const projection = project(store, options(await kit.open(), { on }));
      const failure: unknown = await projection.run().catch((error: unknown) => error);
      expect(failure).toMatchObject({
        code: 'projection_failed',
        data: { projection: 'lines', stream: 'a-1', version: 17, type: 'Counted' },
        cause: new Error('No such customer.'),
      });
      expect((failure as Error).message).toContain('at event 17 (Counted) of a-1');
      expect(await kit.lines()).toEqual((await all()).slice(0, 17));
      expect(projection.status()).toMatchObject({ state: 'stopped', events: 17 });
      await expect(projection.catchUp()).rejects.toMatchObject({ code: 'projection_failed', data: { version: 17 } });
      expect(await kit.lines()).toEqual((await all()).slice(0, 17));
      isBroken = false;
      await projection.catchUp();
      expect(await kit.lines()).toEqual(await all());
    });

    during(
      'keep all before a failure, also where another event fails, or time runs out, when it is done again',
      async () => {
        await grown(30, 'a-1');
        let nowMs = 1_000_000;
        let failures = 0;
        const on = {
          Counted: async (tx: Tx, event: RecordedEvent) => {
            await kit.add(tx, lineOf(event));
            if (failures > 1) nowMs += 300;
            if (![17, failures === 0 ? 17 : 9].includes(event.version)) return;
            failures++;
            throw new Error(`Failure ${failures}.`);
          },
        };
        const projection = new Projecting(store, options(await kit.open(), { on }), {
          ...systemWorld,
          nowMs: () => nowMs,
        });
        await expect(projection.catchUp()).rejects.toMatchObject({ code: 'projection_failed', data: { version: 9 } });
        expect(await kit.lines()).toEqual((await all()).slice(0, 9));
      },
    );

    during('begin with `init`, once; where that fails nothing is there, and the next run begins', async () => {
      await grown(1, 'a-1');
      let tries = 0;
      const init = async (tx: Tx) => {
        await kit.init(tx);
        if (++tries === 1) throw new Error('Not yet.');
      };
      const projection = project(store, options(await kit.open(), { init }));
      await expect(projection.catchUp()).rejects.toThrow('Not yet.');
      await projection.catchUp();
      await projection.catchUp();
      expect(tries).toBe(2);
      expect(await kit.lines()).toEqual(['a-1@0']);
    });

    during('are told of redacted events apart from their handlers', async () => {
      await grown(4, 'a-1');
      await store.redact('a-1', { events: [1, 2], reason: 'a request' });
      const onErased = (tx: Tx, event: RecordedEvent<undefined>) => {
        expect(event.data).toBeUndefined();
        return kit.add(tx, `erased ${lineOf(event)}`);
      };
      await project(store, options(await kit.open(), { onErased })).catchUp();
      const told = ['a-1@0', 'erased a-1@1', 'erased a-1@2', 'a-1@3'];
      expect(await kit.lines()).toEqual(told);
      await store.scavenge();
      await kit.reset();
      await project(store, options(await kit.open(), { onErased })).catchUp();
      expect(await kit.lines()).toEqual(told);
      await kit.reset();
      await project(store, options(await kit.open())).catchUp();
      expect(await kit.lines()).toEqual(['a-1@0', 'a-1@3']);
    });

    during('refuse a commit from behind: nothing of a reader that stood still is kept', async () => {
      await grown(3, 'a-1');
      const model = await kit.open();
      await project(store, options(model)).catchUp();
      const text = (await model.load('lines'))!;
      const late = [null, `${text} `, JSON.stringify({ checkpoint: null })];
      for (const previous of late) {
        const isDone = await model.commit('lines', previous, async (tx) => {
          await kit.add(tx, 'late');
          return 'late';
        });
        expect(isDone).toBe(false);
      }
      expect([await model.load('lines'), await kit.lines()]).toEqual([text, await all()]);
      await expect(
        model.commit('lines', text, async (tx) => {
          await kit.add(tx, 'broken');
          throw new Error('Broken.');
        }),
      ).rejects.toThrow('Broken.');
      expect([await model.load('lines'), await kit.lines()]).toEqual([text, await all()]);
    });

    during('end in time and go on where they were', async () => {
      await grown(25, 'a-1');
      let nowMs = 1_000_000;
      const world = { ...systemWorld, nowMs: () => nowMs };
      const slow = {
        Counted: (tx: Tx, event: RecordedEvent) => {
          nowMs += 100;
          return kit.add(tx, lineOf(event));
        },
      };
      const projection = new Projecting(store, options(await kit.open(), { on: slow }), world);
      let rounds = 0;
      for (let isCaughtUp = false; !isCaughtUp; rounds++) {
        const deadline = nowMs + 1_000;
        ({ isCaughtUp } = await projection.catchUp({ deadline }));
        // A tenth is left to commit in.
        expect(nowMs).toBeLessThanOrEqual(deadline - 100 + 99);
        expect((await kit.lines()).length).toBe(Math.min(25, 9 * (rounds + 1)));
      }
      expect(rounds).toBe(3);
      expect(await kit.lines()).toEqual(await all());
      // A time that is over begins nothing.
      await grown(1, 'a-1');
      expect(await projection.catchUp({ deadline: new Date(nowMs - 1) })).toMatchObject({ isCaughtUp: false });
      expect((await kit.lines()).length).toBe(25);
      // Nor does one that is over when the database lets it in.
      const model = await kit.open();
      const waiting: Model<Tx> = {
        ...model,
        commit: (name, previous, work) =>
          model.commit(name, previous, (tx) => {
            nowMs += 5_000;
            return work(tx);
          }),
      };
      const late = new Projecting(store, options(waiting), world);
      expect(await late.catchUp({ deadline: nowMs + 1_000 })).toMatchObject({ isCaughtUp: false, events: 0 });
      expect((await kit.lines()).length).toBe(25);
      expect(await late.catchUp()).toMatchObject({ isCaughtUp: true, events: 1 });
      expect(await kit.lines()).toEqual(await all());
    });

    during('commit in batches that end by events, bytes and time', async () => {
      await grown(40, 'a-1');
      let nowMs = 0;
      const sizes = async (batch: ProjectionOptions<Tx, RecordedEvent>['batch'], stepMs: number) => {
        await kit.reset();
        const counts: number[] = [];
        let before = 0;
        const model = watched(await kit.open(), async () => {
          const { length } = await kit.lines();
          counts.push(length - before);
          before = length;
        });
        const on = {
          Counted: (tx: Tx, event: RecordedEvent) => {
            nowMs += stepMs;
            return kit.add(tx, lineOf(event));
          },
        };
        const projection = new Projecting(store, options(model, { batch: batch!, on }), {
          ...systemWorld,
          nowMs: () => nowMs,
        });
        await projection.catchUp();
        expect(await kit.lines()).toEqual(await all());
        return counts;
      };
      expect(Math.max(...(await sizes({ events: 16 }, 0)))).toBe(16);
      // The first ten have seven bytes, the others eight.
      expect(Math.max(...(await sizes({ bytes: 80 }, 0)))).toBe(12);
      expect(Math.max(...(await sizes({ milliseconds: 50 }, 10)))).toBe(5);
    });

    test('stop where the log was restored to before their checkpoint', async () => {
      await kit.reset();
      const at = path.join(folder, 'restored');
      const place = { directory: at, chunkBytes: 1_048_576 };
      const opened = async (work: () => Promise<void>) => {
        store = await openStore(place);
        try {
          await work();
        } finally {
          await store.close();
        }
      };
      await opened(() => grown(3, 'a-1'));
      await cp(at, `${at}-backup`, { recursive: true });
      await opened(async () => {
        await grown(3, 'a-1');
        await project(store, options(await kit.open())).catchUp();
      });
      await rm(at, { recursive: true });
      await cp(`${at}-backup`, at, { recursive: true });
      for (const count of [0, 20])
        await opened(async () => {
          await grown(count, 'a-2');
          const projection = project(store, options(await kit.open()));
          const stopped: unknown = await projection.run().catch((error: unknown) => error);
          expect(stopped).toMatchObject({ code: 'checkpoint_unknown' });
          expect((stopped as Error).message).toMatch(/^The projection lines has stopped.*another name/s);
        });
      expect(await kit.lines()).toHaveLength(6);
    });

    if (!isShared) return;

    during('are built anew under another name, beside the old one', async () => {
      await grown(5, 'a-1');
      await project(store, options(await kit.open())).catchUp();
      const on = { Counted: (tx: Tx, event: RecordedEvent) => kit.add(tx, `v2 ${lineOf(event)}`) };
      const second = { name: 'lines-2', on, init: () => {} };
      await project(store, options(await kit.open(), second)).catchUp();
      await grown(1, 'a-1');
      await project(store, options(await kit.open())).catchUp();
      await project(store, options(await kit.open(), second)).catchUp();
      const lines = await kit.lines();
      expect(lines.filter((line) => !line.startsWith('v2 '))).toEqual(await all());
      expect(lines.filter((line) => line.startsWith('v2 '))).toEqual((await all()).map((line) => `v2 ${line}`));
    });

    during('are harmless in several instances at once', async () => {
      await grown(150, 'a-1');
      const stop = new AbortController();
      const world = { ...systemWorld, wait: (_: number, signal: AbortSignal) => systemWorld.wait(5, signal) };
      const instances = await Promise.all(
        Array.from({ length: 3 }, async () => {
          const model = await kit.open();
          const on = {
            Counted: async (tx: Tx, event: RecordedEvent) => {
              // So that the others come in between.
              if (event.version % 7 === 0) await systemWorld.turn();
              await kit.add(tx, lineOf(event));
            },
          };
          return new Projecting(store, options(model, { on, batch: { events: 8 } }), world);
        }),
      );
      const running = Promise.all(instances.map((each) => each.run({ signal: stop.signal })));
      running.catch(() => stop.abort());
      for (let i = 0; i < 50; i++) await grown(1, `b-${i % 3}`);
      const last = await store.append('b-9', { type: 'Counted' });
      await until(async () => stop.signal.aborted || (await kit.lines()).includes(`b-9@${last.version}`));
      stop.abort();
      await running;
      expect(await kit.lines()).toEqual(await all());
      expect(instances.reduce((sum, each) => sum + each.status().events, 0)).toBe(201);
    });
  });
}
