import { cpSync, mkdirSync, readdirSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { openObjects } from '../../../infra/objects/open-objects.ts';
import { startNode } from '../child.ts';
import { BenchCluster, get, sharedPlace } from '../clusters.ts';
import { EVENT_BYTES } from '../events.ts';
import { alternate, row } from '../figure.ts';
import type { Figure } from '../figure.ts';
import { filledStore } from '../object-stores.ts';
import { copyWithDigest } from '../raw-copy.ts';

const CATCH_UP_MIN = 0.5;
const LOOK_MS = 2;

export const clusterCatchUp: Figure = {
  name: 'cluster-catch-up',
  isLong: true,
  how: `A log of a million events of ${EVENT_BYTES} bytes on a directory, in files but for its last commits: a member is started with an empty directory, and measured from its spawn until it is ready, which is when it has reached the end of the log. The limit is the chunk files of such a copy copied with one sync each, and a single node started on them without an index, from its spawn until it is ready: it replays the log. Another member runs in both cases.`,
  async run(settings) {
    const folder = join(settings.folder, 'cluster-catch-up');
    const place = await sharedPlace('directory', folder);
    const objects = await openObjects({ kind: 'directory', path: place.storage });
    settings.say(`  filling a log of ${settings.logEvents} events ...`);
    await filledStore(objects, settings.logEvents, EVENT_BYTES);
    await objects.close();
    const cluster = await BenchCluster.make(folder, place);
    const [first, empty] = cluster.members as [(typeof cluster.members)[0] & {}, (typeof cluster.members)[0] & {}];
    try {
      await first.start();
      await ready(first.url);
      const ours = async (): Promise<number> => {
        await empty.forget();
        const begin = performance.now();
        await empty.start();
        await ready(empty.url);
        const ms = performance.now() - begin;
        await empty.stop();
        return (settings.logEvents / ms) * 1_000;
      };
      await ours();
      const original = join(folder, 'original');
      cpSync(empty.options.folder, original, { recursive: true });
      const files = readdirSync(original)
        .filter((name) => name.startsWith('chunk-'))
        .map((name) => join(original, name));
      const copied = join(folder, 'copied');
      const notes: string[] = [];
      const limit = async (): Promise<number> => {
        const copySeconds = copyWithDigest(files, join(folder, 'copied-file'), false);
        // Its content does not matter to the time of a copy: that is taken above.
        await rm(copied, { recursive: true, force: true });
        mkdirSync(copied);
        for (const name of readdirSync(original))
          if (name.startsWith('chunk-') || name.endsWith('.chk')) cpSync(join(original, name), join(copied, name));
        const begin = performance.now();
        const node = await startNode(copied);
        await ready(`http://127.0.0.1:${node.port}`);
        const replaySeconds = (performance.now() - begin) / 1_000;
        await node.stop();
        notes.push(`${copySeconds.toFixed(2)} and ${replaySeconds.toFixed(2)}`);
        return settings.logEvents / (copySeconds + replaySeconds);
      };
      await limit();
      notes.length = 0;
      const measured = await alternate(settings.windows, limit, ours);
      return [
        row('catching up of an empty member', 'events/s', measured, { kind: 'at least', value: CATCH_UP_MIN }, [
          `the limit copies and replays in ${notes.join(', ')} s; the member takes ${measured.ours.map((rate) => (settings.logEvents / rate).toFixed(2)).join(', ')} s, of which a part is its own start and its view of the log`,
        ]),
      ];
    } finally {
      await cluster.stop();
      await place.close();
    }
  },
};

async function ready(url: string): Promise<void> {
  while ((await get(`${url}/health/ready`)).status !== 200)
    await new Promise((resolve) => {
      setTimeout(resolve, LOOK_MS);
    });
}
