import { getPriority } from 'node:os';
import { SkuaError } from '../../core/base/errors.ts';
import type { Job } from '../../core/ports/jobs.ts';
import type { ScavengeStateOptions } from '../../core/ports/scavenge-state.ts';

/** Jobs that the tests of the two Jobs implementations run. */
export const JOBS: Readonly<Record<string, Job>> = {
  /** Writes a file, reads it back and answers with what the context offers. */
  copy: async (args: { path: string; bytes: Uint8Array }, context) => {
    const file = await context.storage.create(args.path);
    await file.writeAt(0, args.bytes);
    await file.sync();
    const read = await file.read(0, file.size);
    await file.close();
    return { size: read.length, crc: context.digests.crc32(read), id: context.ids.uuidBytes().length };
  },
  refuse: async (args: { path: string }) => {
    throw new SkuaError('index_corrupt', 'The table is damaged.', { path: args.path, offset: 17 });
  },
  break: async () => {
    throw new TypeError('a defect');
  },
  uncloneable: async () => {
    throw new SkuaError('io_error', 'With a function.', { call: () => {} });
  },
  count: async (args: { to: number }, context) => {
    for (let i = 1; i <= args.to; i++) context.progress({ done: i, total: args.to, unit: 'entries' });
    return args.to;
  },
  'scavenge.wait': (args, context) => JOBS.wait!(args, context),
  'index.merge-tables': (args, context) => JOBS.wait!(args, context),
  'index.write-table': async () => 'written',
  'log.verify-chunk': (args, context) => JOBS.wait!(args, context),
  /** Raises the shared cell to 1 once it runs, and runs until it is aborted or the cell is raised to 2. */
  wait: async (args: { cell: Int32Array }, context) => {
    Atomics.compareExchange(args.cell, 0, 0, 1);
    context.progress({ done: 0, total: 1, unit: 'chunks' });
    while (Atomics.load(args.cell, 0) !== 2) {
      await context.checkpoint();
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
    }
    return 'released';
  },
  sleep: async (args: { ms: number }, context) => {
    context.progress({ done: 0, total: 1, unit: 'chunks' });
    const startMs = context.monotonicMs();
    await context.sleep(args.ms);
    return context.monotonicMs() - startMs;
  },
  /** Sleeps for a day, from which it is woken at once. */
  nap: async (_args: null, context) => {
    const woken = new AbortController();
    const slept = context.sleep(86_400_000, woken.signal);
    woken.abort();
    await slept;
    return 'awake';
  },
  /** Adds to a weight of the scavenge database. */
  'scavenge.weigh': async (args: { state: ScavengeStateOptions; weight: number }, context) => {
    const state = context.scavengeStates.open(args.state);
    try {
      const before = state.weight(0, 0);
      context.progress({ done: before, total: 1, unit: 'chunks' });
      state.begin();
      state.addWeight(0, args.weight);
      state.commit({ point: { position: 1, eventNumber: 0, effectiveNowMs: 0, threshold: 0 }, stage: 'Cleaning' });
      return { before, after: state.weight(0, 0) };
    } finally {
      state.close();
    }
  },
  niceness: async () => getPriority(0),
  'scavenge.niceness': async () => getPriority(0),
  'backup.niceness': async () => getPriority(0),
  die: async () => process.exit(3),
  eat: async () => {
    const held: number[][] = [];
    for (;;) held.push(Array.from({ length: 100_000 }, (_, i) => i * 1.5));
  },
};
