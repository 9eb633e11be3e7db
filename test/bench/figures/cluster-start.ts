import { join } from 'node:path';
import { BenchCluster, sharedPlace } from '../clusters.ts';
import { row } from '../figure.ts';
import type { Figure, Row } from '../figure.ts';

/** Milliseconds that the goal allows. */
const READY_MS = 4_000;

export const clusterStart: Figure = {
  name: 'cluster-start',
  isLong: true,
  how: 'Three members started at the same moment, on empty directories and a log that is not there yet, with default options: from the first spawn until all are ready and name the same leader. The limit is the goal, in milliseconds.',
  async run(settings) {
    const rows: Row[] = [];
    for (const kind of ['directory', 's3'] as const) {
      const ours: number[] = [];
      let note = '';
      for (let i = 0; i < settings.windows; i++) {
        const folder = join(settings.folder, `cluster-start-${kind}-${i}`);
        const place = await sharedPlace(kind, folder);
        note = place.note;
        const cluster = await BenchCluster.make(folder, place);
        try {
          ours.push(await cluster.startAll());
        } finally {
          await cluster.stop();
          await place.close();
        }
      }
      rows.push(
        row(
          `three members ready, on ${kind === 's3' ? 'an S3 server' : 'a directory'}`,
          'ms',
          { limit: [READY_MS], ours },
          { kind: 'at most', value: 1 },
          [note],
        ),
      );
    }
    return rows;
  },
};
