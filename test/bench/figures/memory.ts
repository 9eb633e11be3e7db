import { join } from 'node:path';
import { NODE_FLAGS, startHelper } from '../child.ts';
import { row } from '../figure.ts';
import type { Figure } from '../figure.ts';
import type { MemoryRequest, MemoryResult } from '../processes/memory-child.ts';

const LIMIT_MIB = 400;
/** What may come on top with the second million and still counts as flat. */
const FLAT_RATIO = 1.15;

export const memory: Figure = {
  name: 'memory',
  how: `A process of its own, with all its worker threads, appends one event to each of a million new streams through 64 clients, and then to another million, and a third. Measured is its largest resident size (VmHWM). The first memtable is written, and the worker that does it started, only when the first million is complete; what that takes once comes on top in the second. Growth is judged in both steps; each may raise the peak by at most ${Math.round((FLAT_RATIO - 1) * 100)} %.`,
  async run(settings) {
    const child = startHelper([...NODE_FLAGS, 'test/bench/processes/memory-child.ts', join(settings.folder, 'memory')]);
    try {
      const append = (from: number, to: number): Promise<MemoryResult> =>
        child.ask<MemoryResult>({ from, to } satisfies MemoryRequest);
      const first = await append(0, settings.memoryStreams);
      const second = await append(settings.memoryStreams, 2 * settings.memoryStreams);
      const third = await append(2 * settings.memoryStreams, 3 * settings.memoryStreams);
      const note = (result: MemoryResult): string =>
        `${Math.round(settings.memoryStreams / result.seconds)} appends/s, ${Math.round(result.nowMiB)} MiB at the end`;
      return [
        row(
          'peak memory, 1 M streams',
          'MiB',
          { limit: [LIMIT_MIB], ours: [first.peakMiB] },
          { kind: 'below', value: 1 },
          [note(first)],
        ),
        row(
          'peak memory, 2 M streams',
          'MiB',
          { limit: [LIMIT_MIB], ours: [second.peakMiB] },
          { kind: 'below', value: 1 },
          [note(second)],
        ),
        row(
          'peak memory, 2 M streams, beside 1 M',
          'MiB',
          { limit: [first.peakMiB], ours: [second.peakMiB] },
          { kind: 'below', value: FLAT_RATIO },
        ),
        row(
          'peak memory, 3 M streams, beside 2 M',
          'MiB',
          { limit: [second.peakMiB], ours: [third.peakMiB] },
          { kind: 'below', value: FLAT_RATIO },
          [note(third)],
        ),
      ];
    } finally {
      await child.stop();
    }
  },
};
