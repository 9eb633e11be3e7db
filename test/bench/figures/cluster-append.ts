import { randomUUID } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { link, open, readdir, stat, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { NODE_FLAGS, startHelper, startNode, startServer } from '../child.ts';
import { BenchCluster, sharedPlace } from '../clusters.ts';
import { EVENT_BYTES } from '../events.ts';
import { alternate, median, row } from '../figure.ts';
import type { Figure } from '../figure.ts';
import type { LoadRequest, LoadResult } from '../processes/http-load.ts';

const CLIENTS = 64;
/**
 * Windows of each before the first that counts: a request through a follower takes half as much processor time after a
 * dozen as in the first.
 */
const WARM_UPS = 12;
const LEADER_MIN = 0.4;
const FOLLOWER_MIN = 0.36;
const ONE_CLIENT_MAX = 1.6;
/** Commits of which it is asked how large they are, with those before them that they carry. */
const WEIGHED_COMMITS = 128;
/** Of a record of these events, about. */
const RECORD_BYTES = EVENT_BYTES + 150;

/**
 * What each commit asks of the disk, by hand: a file is written, synced, linked under its number, its folder synced;
 * and a local log is written and synced.
 */
class BareCommits {
  readonly #folder: string;
  #number = 0;

  constructor(folder: string) {
    this.#folder = folder;
    mkdirSync(folder, { recursive: true });
  }

  /** Events a second, with so many of them in a commit, and the median of the milliseconds that a commit takes. */
  async run(
    ms: number,
    events: number,
    objectBytes: number,
  ): Promise<{ readonly rate: number; readonly p50Ms: number }> {
    const bytes = Buffer.alloc(objectBytes, 0x61);
    const group = Buffer.alloc(events * RECORD_BYTES, 0x61);
    const log = await open(join(this.#folder, 'log'), 'a+');
    const begin = performance.now();
    const commitMs: number[] = [];
    for (let started = begin; started - begin < ms;) {
      const temporary = join(this.#folder, randomUUID());
      const file = await open(temporary, 'wx');
      await file.write(bytes);
      await file.sync();
      await file.close();
      await link(temporary, join(this.#folder, String(this.#number++).padStart(20, '0')));
      const folder = await open(this.#folder, 'r');
      await folder.sync();
      await folder.close();
      await unlink(temporary);
      await log.write(group);
      await log.datasync();
      const ended = performance.now();
      commitMs.push(ended - started);
      started = ended;
    }
    const rate = ((commitMs.length * events) / (performance.now() - begin)) * 1_000;
    await log.close();
    return { rate, p50Ms: median(commitMs) };
  }
}

/** Number of the last commit of a log in a directory. */
async function commitsIn(storage: string): Promise<number> {
  return Number((await readdir(join(storage, 'log'))).toSorted().at(-1));
}

/** Mean bytes of the newest commits, each with those that it carries. */
async function commitBytes(storage: string): Promise<number> {
  const newest = (await readdir(join(storage, 'log'))).toSorted().slice(-WEIGHED_COMMITS);
  const sizes = await Promise.all(newest.map(async (name) => (await stat(join(storage, 'log', name))).size));
  return Math.round(sizes.reduce((sum, size) => sum + size, 0) / sizes.length);
}

export const clusterAppend: Figure = {
  name: 'cluster-append',
  isLong: true,
  how: `Six processes: three members over a directory, two single nodes, of which one has its log in a directory too (\`--storage\`) and the other its own data (\`--db\`), and the load generator of append-http with ${CLIENTS} connections, at a single node, at the leader, and half of them at each follower, in turns. Who is not measured is idle. Beside it, in the same run: the creates and appends that such commits are made of, by hand and without anything of ours (a file of as many bytes as the newest commits have, synced, linked and its folder synced, then the records appended to a log and synced), with as many events in a commit as a commit of the leader had; and the same for a single client, with one event in each.`,
  async run(settings) {
    const folder = join(settings.folder, 'cluster-append');
    const place = await sharedPlace('directory', folder);
    const node = await startNode(join(folder, 'single'));
    const onDirectory = await startServer([
      ...NODE_FLAGS,
      'local/main.ts',
      'start',
      '--storage',
      join(folder, 'single-objects'),
      '--node-port',
      '0',
      '--insecure',
    ]);
    const cluster = await BenchCluster.start(folder, place);
    const generators = [0, 1].map(() => startHelper(['test/bench/processes/http-load.ts']));
    const seen: Record<'single' | 'onDirectory' | 'leader' | 'follower', LoadResult[]> = {
      single: [],
      onDirectory: [],
      leader: [],
      follower: [],
    };
    const load = async (ports: readonly number[], into: LoadResult[], clients = CLIENTS): Promise<number> => {
      const results = await Promise.all(
        ports.map((port, i) =>
          generators[i]!.ask<LoadResult>({
            port,
            connections: clients / ports.length,
            ms: settings.windowMs,
          } satisfies LoadRequest),
        ),
      );
      for (const { failures, firstFailure } of results)
        if (failures > 0) throw new Error(`${failures} appends failed, the first with:\n${firstFailure}`);
      into.push(...results);
      return results.reduce((sum, { requestsPerSecond }) => sum + requestsPerSecond, 0);
    };
    try {
      const leader = (await cluster.leader()).options.port;
      const followers = (await cluster.followers()).map(({ options }) => options.port);
      for (let i = 0; i < WARM_UPS; i++)
        for (const ports of [[onDirectory.port], [node.port], [leader], followers]) await load(ports, []);
      const beside = {
        leader: await alternate(
          settings.windows,
          () => load([onDirectory.port], seen.onDirectory),
          () => load([leader], seen.leader),
        ),
        followers: await alternate(
          settings.windows,
          () => load([onDirectory.port], seen.onDirectory),
          () => load(followers, seen.follower),
        ),
      };
      const besideOwn = {
        leader: await alternate(
          settings.windows,
          () => load([node.port], seen.single),
          () => load([leader], []),
        ),
        followers: await alternate(
          settings.windows,
          () => load([node.port], seen.single),
          () => load(followers, []),
        ),
      };
      const before = await commitsIn(place.storage);
      const begin = performance.now();
      const rate = await load([leader], []);
      const commits = (await commitsIn(place.storage)) - before;
      const events = Math.max(1, Math.round((rate * (performance.now() - begin)) / 1_000 / Math.max(1, commits)));
      const bytes = await commitBytes(place.storage);
      const bare = new BareCommits(join(folder, 'bare'));
      await bare.run(settings.windowMs, events, bytes);
      const besideBare = await alternate(
        settings.windows,
        async () => (await bare.run(settings.windowMs, events, bytes)).rate,
        () => load([leader], []),
      );
      const alone: LoadResult[] = [];
      await load([leader], [], 1);
      const bytesOfOne = await commitBytes(place.storage);
      const oneClient = await alternate(
        settings.windows,
        async () => (await bare.run(settings.windowMs, 1, bytesOfOne)).p50Ms,
        async () => {
          await load([leader], alone, 1);
          return alone.at(-1)!.p50Ms;
        },
      );
      const of = (side: LoadResult[], what: (result: LoadResult) => number): string =>
        median(side.map(what)).toFixed(1);
      const times = (side: LoadResult[], single: LoadResult[]): string =>
        `latency p50 ${of(side, (r) => r.p50Ms)} ms, p99 ${of(side, (r) => r.p99Ms)} ms (single node ${of(single, (r) => r.p50Ms)} and ${of(single, (r) => r.p99Ms)} ms)`;
      const atLeast = {
        leader: { kind: 'at least', value: LEADER_MIN },
        followers: { kind: 'at least', value: FOLLOWER_MIN },
      } as const;
      return [
        row(
          'append through the leader, beside a single node on a directory',
          'requests/s',
          beside.leader,
          atLeast.leader,
          [times(seen.leader, seen.onDirectory)],
        ),
        row(
          'append through followers, beside a single node on a directory',
          'requests/s',
          beside.followers,
          atLeast.followers,
          [times(seen.follower, seen.onDirectory)],
        ),
        row(
          'append through the leader, beside a single node with its own data',
          'requests/s',
          besideOwn.leader,
          atLeast.leader,
          [times(seen.leader, seen.single)],
        ),
        row(
          'append through followers, beside a single node with its own data',
          'requests/s',
          besideOwn.followers,
          atLeast.followers,
          [times(seen.follower, seen.single)],
        ),
        row('append through the leader, beside its creates and appends alone', 'requests/s', besideBare, null, [
          `${events} events in a commit of ${bytes} bytes`,
        ]),
        row(
          'append of one client through the leader, p50, beside its creates and appends alone',
          'ms',
          oneClient,
          {
            kind: 'at most',
            value: ONE_CLIENT_MAX,
          },
          [`commits of ${bytesOfOne} bytes`],
        ),
      ];
    } finally {
      for (const generator of generators) await generator.stop();
      await cluster.stop();
      await node.stop();
      await onDirectory.stop();
      await place.close();
    }
  },
};
