import { expect, test } from 'vitest';
import { silentMeter } from '../../../core/ports/meter.ts';
import type { Meter } from '../../../core/ports/meter.ts';
import { ANY } from '../../../core/streams/api.ts';
import { Cluster, event } from './kit.ts';

/** Commits by where they came from, as the metrics show them. */
function counting(): { readonly meter: Meter; readonly counts: Record<string, number> } {
  const counts: Record<string, number> = {};
  return {
    counts,
    meter: {
      ...silentMeter,
      count: (name, by = 1, labels) => {
        if (name === 'eventstore_cluster_commits_total')
          counts[labels!['from']!] = (counts[labels!['from']!] ?? 0) + by;
      },
    },
  };
}

test('own commits, those of the bucket and those of the leader are told apart', async () => {
  const cluster = new Cluster();
  const [own, other] = [counting(), counting()];
  const a = await cluster.open(undefined, { meter: own.meter });
  const b = await cluster.open(undefined, { meter: other.meter });
  await a.store.append('s', ANY, [event('one')]);
  await a.store.append('s', ANY, [event('two')]);
  await b.log.refresh();
  expect(other.counts).toEqual({ bucket: 2 });
  const from = a.log.applied + 1;
  await a.store.append('s', ANY, [event('three')]);
  const pushed = a.log.recent(from, 65_536)!;
  await b.log.takePushed(pushed);
  await b.log.takePushed(pushed);
  expect(own.counts).toEqual({ self: 3 });
  expect(other.counts).toEqual({ bucket: 2, leader: 1 });
  await Promise.all([a.close(), b.close()]);
});
