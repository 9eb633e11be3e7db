import { ASSUMPTIONS, commitsPerSecondMax, monthOf, SECONDS_PER_MONTH } from './model.ts';
import type { Assumptions, Measured, Month, Requests } from './model.ts';
import type { ClusterMeasured } from './cluster.ts';
import type { Prices } from './prices.ts';
import { FAILURE_REQUESTS_A_MINUTE } from '../../../core/shared-log/shared-failures/shared-failures.ts';

const RATES = [1, 100, 10_000] as const;
/** Instances that somebody may guess passwords at: the concurrency that is reserved for `streams` and `admin`. */
const GUESSED_INSTANCES = 60;

const number = (value: number, digits = 0): string =>
  value
    .toLocaleString('en', { maximumFractionDigits: digits, minimumFractionDigits: digits })
    .replaceAll(',', '\u202f');
const dollars = (value: number): string => (value < 0.005 ? '0.00' : number(value, value < 1_000 ? 2 : 0));
const requests = (value: number): string => number(value, value < 10 && value % 1 !== 0 ? 2 : 0);

/** The cost page, as it stands in the repository. */
export function costPage(
  measured: Measured,
  cluster: ClusterMeasured,
  prices: Prices,
  assumed: Assumptions = ASSUMPTIONS,
): string {
  return `# What a store on object storage asks for, and what that costs

Written by \`npm run cost -- --write\`: requests and bytes are counted at the object store's port, over a store in memory; prices are those of
${prices.region} as of ${prices.asOf} (\`test/bench/cost/prices.ts\`); the arithmetic is \`test/bench/cost/model.ts\`.

## Requests

Events of ${number(measured.eventBytes)} bytes; chunks of ${number(measured.chunkBytes / 1_048_576)} MiB. PUT counts what is billed alike: PUT, LIST, multipart.

| Work | PUT | GET | bytes in | bytes out |
|---|---|---|---|---|
${countRows(measured)
  .map(
    ([title, count]) =>
      `| ${title} | ${requests(count.puts)} | ${requests(count.gets)} | ${number(count.bytesIn)} | ${number(count.bytesOut)} |`,
  )
  .join('\n')}

A commit carries those before it, up to 64 KiB, so that a cold start reads the tail with few requests: that is most of the bytes in of a small append. It
costs nothing where traffic into the storage is free, and the objects are gone an hour after the tick that took them over.

The first tick of a process also opens the store, for twice as many requests. In the hour after a scavenge, and the one after its history was taken over, about ten ticks write a
manifest for the sake of removal alone, and a store that nobody writes to gets one a day: less than a cent a month.

## A month

${number(assumed.readsPerEvent)} read for each commit, one month of events kept, a tick every ${number(assumed.tickEverySeconds)} seconds. A commit takes ${number(assumed.commitMs)} ms, a function ${number(assumed.functionMs)} ms of ${number(assumed.functionGb, 1)} GB, a tick ${number(assumed.tickMs / 1_000)} s of
${number(assumed.tickGb, 1)} GB. These are taken for granted and not measured; change them in \`model.ts\`.

| Events a second | events a commit | logs | PUT, millions | GET, millions | stored, GB | requests, $ | storage, $ | functions, $ | together, $ |
|---|---|---|---|---|---|---|---|---|---|
${months(measured, assumed, prices).map(monthRow).join('\n')}

An idle store costs its ticks: ${dollars(idleMonth(measured, assumed, prices))} $ a month with one a minute; a longer period costs less.

## A cluster

${number(cluster.members)} members with default options, each with a copy on a disk of its own; all their requests together, the clock moved on by hand.

| Work | PUT | GET | bytes in | bytes out |
|---|---|---|---|---|
| append of one event, until all members have it | ${requests(cluster.append.puts)} | ${requests(cluster.append.gets)} | ${number(cluster.append.bytesIn)} | ${number(cluster.append.bytesOut)} |
| an hour without a write, without ticks | ${requests(cluster.idleHour.puts)} | ${requests(cluster.idleHour.gets)} | ${number(cluster.idleHour.bytesIn)} | ${number(cluster.idleHour.bytesOut)} |

Reads ask for nothing: they are those of the copy. Followers get commits from the leader, and look themselves once a minute; the leader looks every two seconds whether a function has
written. That is ${dollars(clusterIdleMonth(cluster, prices))} $ a month for an idle cluster, and what its ticks cost.

## Logins and secrets

A login that fails at a function is counted for all its instances by one PUT, or up to six where several instances count the same user at the same moment; one that succeeds costs nothing.
An instance makes at most ${number(FAILURE_REQUESTS_A_MINUTE)} such requests a minute, so that guessing at ${number(GUESSED_INSTANCES)} instances, hour after hour, costs at most ${dollars(((GUESSED_INSTANCES * 60 * FAILURE_REQUESTS_A_MINUTE) / 1_000) * prices.putPer1000)} $ an hour for them.

Secrets are read when a function starts: one request for the token at each start of \`webhook\` and \`admin\`, and the two passwords once, for the users that they are made for. That is
${dollars(prices.secretReadsPer10000)} $ for ten thousand starts; each of the three secrets costs ${dollars(prices.secretMonth)} $ a month.

## Limits of one log, and beyond

- One commit at a time: at ${number(assumed.commitMs)} ms each, **${number(commitsPerSecondMax(assumed))} commits a second**, whoever makes them. Several writers share that, and each loss costs a request more; with four of them and 80 commits a second wanted in all, the rows "4 writers on one log" of \`test/bench/RESULTS.md\` say how many.
- A commit holds as many events as fit a chunk, so events are limited by batching: ${number(commitsPerSecondMax(assumed))} commits of 500 events of 1 kB are ${number(commitsPerSecondMax(assumed) * 500)} events and ${number(commitsPerSecondMax(assumed) * 0.5)} MB a second.
- One prefix takes about ${number(assumed.prefixPutsPerSecond)} PUT and 5 500 GET a second before the storage divides it, which happens by itself under lasting load. One log is far below.
- Beyond one log the streams are divided by a hash of their name among P logs, each with a prefix, ticks and a manifest of its own: P = events a second ÷ (commits a second × events a commit). A stream is in one log, so its order and expected versions hold; there is no order between logs, and \`$all\` is one per log.
- A million events a second of 1 kB, in commits of 500: ${number(1_000_000 / 500)} commits a second, P = ${number(Math.ceil(1_000_000 / 500 / commitsPerSecondMax(assumed)))} logs, ${number(((1_000_000 / 500) * 2_592_000) / 1e6)} million PUT a month for the commits (${dollars((((1_000_000 / 500) * 2_592_000) / 1_000) * prices.putPer1000)} $), and ${number((1_000_000 * 2_592_000 * 1_000) / 1e15, 1)} PB of events.
`;
}

function countRows(measured: Measured): [string, Requests][] {
  return [
    ['append of one event, stream known to the instance', measured.append],
    ['append of one event, stream not known', measured.appendUnknown],
    ['read of one recent event', measured.read],
    ['webhook: note and event', measured.webhook],
    ['tick with nothing to do', measured.idleTick],
    [`tick that takes over ${number(measured.tickCommits)} commits`, measured.busyTick],
    ['scavenge, per chunk that is rewritten, with its share of the rest', measured.scavengedChunk],
  ];
}

function months(measured: Measured, assumed: Assumptions, prices: Prices): Month[] {
  return RATES.flatMap((rate) =>
    (rate === 1 ? [1] : rate === 100 ? [1, 10] : [100, 500]).map((batch) =>
      monthOf(rate, batch, measured, assumed, prices),
    ),
  );
}

function monthRow(month: Month): string {
  const { dollars: cost } = month;
  return `| ${number(month.eventsPerSecond)} | ${number(month.eventsPerCommit)} | ${number(month.logs)} | ${number(month.puts / 1e6, 2)} | ${number(month.gets / 1e6, 2)} | ${number(month.storedGb, 1)} | ${dollars(cost.requests)} | ${dollars(cost.storage)} | ${dollars(cost.functions)} | ${dollars(cost.total)} |`;
}

/** Of its requests. */
function clusterIdleMonth({ idleHour }: ClusterMeasured, prices: Prices): number {
  return (
    (SECONDS_PER_MONTH / 3_600) *
    ((idleHour.puts / 1_000) * prices.putPer1000 + (idleHour.gets / 1_000) * prices.getPer1000)
  );
}

function idleMonth(measured: Measured, assumed: Assumptions, prices: Prices): number {
  return monthOf(0, 1, measured, { ...assumed, tickMs: 500 }, prices).dollars.total;
}
