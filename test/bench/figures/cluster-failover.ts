import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startHelper } from '../child.ts';
import { BenchCluster, get, sharedPlace } from '../clusters.ts';
import { row } from '../figure.ts';
import type { Figure, Row, Settings } from '../figure.ts';
import type { ClusterLoadRequest, ClusterLoadResult } from '../processes/cluster-load.ts';

const CLIENTS = 64;
/** More clients, which append to a stream and delete it in turns. */
const DELETING = 8;
const LOAD_MS = 6_000;
/** Into the load, when it has become even. */
const BEFORE_MS = 2_000;
/** Longest times without an append that the goals allow, in milliseconds. */
const GAP_MS = { killed: { directory: 1_000, s3: 2_000 }, resigned: { directory: 300, s3: 300 } } as const;
const RESIGN_TRIES = 50;

/** A leader that goes while clients at the followers write; `what` says how. */
async function measure(kind: 'directory' | 's3', what: 'killed' | 'resigned', settings: Settings): Promise<Row[]> {
  const folder = join(settings.folder, `cluster-${what}-${kind}`);
  const place = await sharedPlace(kind, folder);
  const cluster = await BenchCluster.start(folder, place);
  const generator = startHelper(['test/bench/processes/cluster-load.ts']);
  const results: ClusterLoadResult[] = [];
  const before: ClusterLoadResult[] = [];
  const said = new Set<string>();
  try {
    const load = (ports: readonly number[], ms: number): Promise<ClusterLoadResult> =>
      generator.ask({ ports, connections: CLIENTS, deleting: DELETING, ms } satisfies ClusterLoadRequest);
    for (let i = 0; i < settings.windows; i++) {
      const leader = await cluster.leader();
      const ports = (await cluster.followers()).map(({ options }) => options.port);
      before.push(await load(ports, BEFORE_MS));
      const loading = load(ports, settings.isSmoke ? BEFORE_MS + 2_000 : LOAD_MS);
      await sleep(BEFORE_MS);
      if (what === 'killed') await leader.kill();
      else said.add((await get(`${leader.url}/admin/node/resign`, 'POST')).text.replaceAll(/\s+/g, ' ').trim());
      results.push(await loading);
      if (what === 'killed') {
        await leader.start();
        continue;
      }
      // The next one resigns only when somebody else leads.
      for (let tries = 0; tries < RESIGN_TRIES && (await cluster.leader()) === leader; tries++) await sleep(100);
      if ((await cluster.leader()) === leader) throw new Error(`${leader.name} still leads: ${[...said].join('; ')}`);
    }
  } finally {
    await generator.stop();
    await cluster.stop();
    await place.close();
  }
  const title = `leader ${what} under load, ${kind === 's3' ? 'S3 server' : 'directory'}`;
  const failures: Record<string, number> = {};
  for (const result of results)
    for (const [how, times] of Object.entries(result.failures)) failures[how] = (failures[how] ?? 0) + times;
  const texts = Object.entries(failures).map(([how, times]) => `${how} ${times}×`);
  const rate = results.map(({ appended }) => Math.round((appended / LOAD_MS) * 1_000));
  return [
    row(
      `${title}: longest gap without an append`,
      'ms',
      { limit: [GAP_MS[what][kind]], ours: results.map(({ longestGapMs }) => longestGapMs) },
      { kind: 'below', value: 1 },
      [
        `each window: ${results.map(({ longestGapMs }) => longestGapMs.toFixed(0)).join(', ')} ms; without a fault ${before.map(({ longestGapMs }) => longestGapMs.toFixed(0)).join(', ')} ms`,
        `slowest append of each window: ${results.map(({ maxMs }) => maxMs.toFixed(0)).join(', ')} ms; appends/s over the whole window ${rate.join(', ')}; ${place.note}`,
      ],
    ),
    row(
      `${title}: appends at followers that succeeded`,
      'appends',
      { limit: results.map(({ appends }) => appends), ours: results.map(({ appended }) => appended) },
      { kind: 'at least', value: 1 },
      [
        `of ${results.reduce((sum, { appends }) => sum + appends, 0)} appends and ${results.reduce((sum, { deletes }) => sum + deletes, 0)} deletions in all windows, no success: ${texts.length === 0 ? 'none' : texts.join(', ')}`,
        ...said,
      ],
    ),
  ];
}

export const clusterFailover: Figure = {
  name: 'cluster-failover',
  isLong: true,
  how: `Three members with default options and ${CLIENTS} clients at the two followers, who append single events one at a time, beside ${DELETING} more who append to a stream and delete it in turns. ${BEFORE_MS / 1_000} s into the load the leader is killed (kill -9) or asked to resign. Nothing is sent twice by a client. The longest gap is that between two acknowledged appends of any client; its limit is the goal.`,
  async run(settings) {
    const rows: Row[] = [];
    for (const kind of ['directory', 's3'] as const)
      for (const what of ['killed', 'resigned'] as const) rows.push(...(await measure(kind, what, settings)));
    return rows;
  },
};
