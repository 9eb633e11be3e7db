import { get } from 'node:http';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { ANY } from '../../../core/streams/api.ts';
import { startNode } from '../child.ts';
import { newEvent } from '../events.ts';
import { alternate, row } from '../figure.ts';
import type { Figure } from '../figure.ts';
import { openFolder } from '../open-folder.ts';
import { PROBE_STREAM, sharedLog } from '../shared-log.ts';

const TRIES_MAX = 2_000;

function status(port: number): Promise<number> {
  return new Promise((resolve) => {
    get(
      { host: '127.0.0.1', port, path: `/streams/${PROBE_STREAM}`, headers: { accept: 'application/json' } },
      (response) => {
        response.resume();
        response.on('end', () => resolve(response.statusCode ?? 0));
      },
    ).on('error', () => resolve(0));
  });
}

/** Milliseconds from spawn to the first 200; the node is stopped cleanly afterwards. */
async function startMs(folder: string): Promise<number> {
  const begin = performance.now();
  const node = await startNode(folder);
  try {
    for (let i = 0; i < TRIES_MAX; i++) if ((await status(node.port)) === 200) return performance.now() - begin;
    throw new Error('The node has started but does not answer a stream read with 200.');
  } finally {
    await node.stop();
  }
}

export const start: Figure = {
  name: 'start',
  how: 'From the spawn of `skua start` on a directory that was closed cleanly to the first 200 on a stream read. The limit is the same start on a directory that holds nothing but the one event that is read; the other holds a million events beside it.',
  async run(settings) {
    const log = await sharedLog(settings);
    const empty = join(settings.folder, 'start-empty');
    const open = await openFolder(empty);
    await open.store.append(PROBE_STREAM, ANY, [newEvent(0)]);
    await open.close();
    await startMs(empty);
    await startMs(log.folder);
    return [
      row(
        'start with 1 M events',
        'ms',
        await alternate(
          settings.windows,
          () => startMs(empty),
          () => startMs(log.folder),
        ),
        { kind: 'below', value: 3 },
      ),
    ];
  },
};
