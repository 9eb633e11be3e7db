import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { alternate, row } from '../figure.ts';
import type { Figure } from '../figure.ts';
import { openFolder } from '../open-folder.ts';
import { RawScan } from '../raw-scan.ts';
import { sharedLog } from '../shared-log.ts';

export const indexRebuild: Figure = {
  name: 'index-rebuild',
  how: 'The directory of the reading figures without its `index` folder: from the call that opens it to the store that answers. The limit is the loop of the reading figures over the whole log.',
  async run(settings) {
    const log = await sharedLog(settings);
    const limit = (): number => {
      const begin = performance.now();
      const scan = new RawScan(log.folder);
      const events = scan.range(0, scan.end);
      scan.close();
      return (events / (performance.now() - begin)) * 1000;
    };
    const ours = async (): Promise<number> => {
      await rm(join(log.folder, 'index'), { recursive: true, force: true });
      const begin = performance.now();
      const open = await openFolder(log.folder);
      const ms = performance.now() - begin;
      await open.close();
      return (log.events / ms) * 1000;
    };
    limit();
    await ours();
    return [
      row('index rebuild', 'events/s', await alternate(settings.windows, limit, ours), {
        kind: 'at least',
        value: 0.8,
      }),
    ];
  },
};
