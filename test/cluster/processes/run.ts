import { mkdirSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { openObjectStore } from '../../../core/shared-log/shared-log.ts';
import { silentLog } from '../../../core/ports/log.ts';
import { silentMeter } from '../../../core/ports/meter.ts';
import type { ObjectLocation } from '../../../core/ports/object-store.ts';
import { systemClock } from '../../../infra/system-clock.ts';
import { nodeDigests } from '../../../infra/node-digests.ts';
import { systemIds } from '../../../infra/system-ids.ts';
import { openObjects } from '../../../infra/objects/open-objects.ts';
import { judgeStream } from '../../shared-log/processes/history.ts';
import { idsOf } from '../../shared-log/processes/run.ts';
import { freePorts } from '../../support/free-ports.ts';
import { Random } from '../../support/random.ts';
import { compareCopies } from './copies.ts';
import type { CopiesReport } from './copies.ts';
import { Faults } from './faults.ts';
import { mountDisk } from './isolation.ts';
import type { Network } from './isolation.ts';
import { Member } from './member.ts';
import { Scavenging } from './scavenging.ts';
import { closeConnections, Subscriber } from './subscriber.ts';
import { KEPT_STREAMS, newReport, Writer } from './writers.ts';
import type { Tally, WritersReport } from './writers.ts';

const PORT = 2113;
const SECRET = 'a secret of this test alone';
/** Small, so that some minutes fill many. */
const CHUNK_SIZE = '256KiB';
const WRITERS = 10;
const WRITER_PAUSE_MS = 40;
/** Longest that subscribers and members may need to see the last event when all is well, in milliseconds. */
const SETTLE_MS_MAX = 300_000;
const GAPS = 5;
const KEPT = /^kept-\d+$/;

/**
 * A run in which fewer kinds of faults, or acknowledged appends, have been when its time is over goes on for at most so
 * much longer, in milliseconds.
 */
const FAULTS_MIN = 3;
const ACKNOWLEDGED_MIN = 51;
const LONGER_MS_MAX = 600_000;

export interface RunOptions {
  readonly storage: string;
  /** The same for this process. */
  readonly place: ObjectLocation;
  readonly env: Readonly<Record<string, string>>;
  readonly folder: string;
  readonly seconds: number;
  readonly seed: number;
  readonly members: number;
  readonly network: Network | null;
  /** False: nodes on object storage without copies, which the harness itself is tried with. */
  readonly hasCopies: boolean;
  readonly say: (line: string) => void;
}

export interface RunReport {
  readonly problems: readonly string[];
  readonly faults: Tally;
  readonly appends: number;
  readonly acknowledged: number;
  readonly repeated: number;
  readonly conflicts: number;
  readonly undecided: number;
  readonly answers: Tally;
  readonly scavenging: Tally;
  readonly deleted: number;
  readonly reads: { readonly own: number; readonly late: number; readonly leader: number; readonly local: number };
  readonly events: number;
  readonly seenBySubscribers: number;
  readonly connections: number;
  readonly longestGapMs: number;
  /** The longest times in which no append was acknowledged: when each began, and how long it was, in milliseconds. */
  readonly gaps: readonly (readonly [number, number])[];
  readonly copies: CopiesReport | null;
}

/**
 * Members of a cluster, or nodes on one place, under all that can happen to them, with clients of all kinds; then
 * everything that was seen is judged.
 */
export async function runCluster(options: RunOptions): Promise<RunReport> {
  const { network, seed, seconds, say, hasCopies } = options;
  const random = new Random(seed);
  const nowMs = (): number => performance.now();
  const startMs = nowMs();
  const problems: string[] = [];
  const members = await makeMembers(options, (what) => problems.push(what));
  const faults = new Faults({
    members,
    random: new Random(seed + 1),
    network,
    isBucketRemote: options.place.kind === 's3',
    hasCopies,
    nowMs,
    say,
  });
  const report = newReport();
  const writing = {
    members,
    report,
    nowMs,
    wasFull: (member: Member, sinceMs: number) => faults.wasFull(member, sinceMs),
    shown: new Map<string, number>(),
  };
  const subscribers = members.flatMap((member, i) => [
    new Subscriber(member, null),
    new Subscriber(member, `kept-${i % KEPT_STREAMS}`),
  ]);
  const scavenging = new Scavenging(members, new Random(seed + 2));
  try {
    await Promise.all(members.map((member) => member.start()));
    for (const member of members) say(`${member.name}: ready after ${Math.round(await faults.ready(member))} ms`);
    const following = subscribers.map((subscriber) => subscriber.run());
    const untilMs = nowMs() + seconds * 1_000;
    // However slow the machine is, enough has happened by then.
    const isEnough = (): boolean =>
      Object.keys(faults.done).length >= FAULTS_MIN && report.acknowledgedMs.length >= ACKNOWLEDGED_MIN;
    const isOver = (): boolean => nowMs() >= (isEnough() ? untilMs : untilMs + LONGER_MS_MAX);
    let isQuiet = false;
    const writers = Array.from({ length: WRITERS }, (_, i) =>
      new Writer(i, new Random(random.next()), writing).run(() => isQuiet, WRITER_PAUSE_MS),
    );
    const background = scavenging.run(isOver);
    await faults.run(isOver);
    for (const member of members) await faults.ready(member);
    isQuiet = true;
    await Promise.all([...writers, background]);
    say('quiet');
    const final = await finalStreams(options.place);
    await settled(subscribers, final);
    for (const [stream, ids] of final) {
      problems.push(
        ...judgeStream(
          stream,
          ids,
          report.operations.filter((operation) => operation.stream === stream),
        ),
      );
      for (const subscriber of subscribers) problems.push(...[subscriber.missing(stream, ids) ?? []].flat());
    }
    await scavenging.judge();
    for (const subscriber of subscribers) subscriber.stop();
    await Promise.all(following);
    for (const member of members) await member.stop();
    const copies = hasCopies
      ? await compareCopies(
          members.map(({ options: { folder } }) => folder),
          (stream) => stream !== '' && !KEPT.test(stream),
        )
      : null;
    problems.push(
      ...report.problems,
      ...faults.problems,
      ...scavenging.problems,
      ...subscribers.flatMap((subscriber) => subscriber.problems),
      ...(copies?.problems ?? []),
    );
    return summary(startMs, problems, report, faults, scavenging, subscribers, final, copies);
  } catch (error) {
    // What went wrong before may be the reason.
    throw new Error(
      `${error instanceof Error ? error.stack : String(error)}\n${[...problems, ...report.problems, ...faults.problems].slice(0, 10).join('\n')}`,
      { cause: error },
    );
  } finally {
    for (const subscriber of subscribers) subscriber.stop();
    for (const member of members) await member.kill();
    closeConnections();
  }
}

async function makeMembers(
  { members, network, folder, storage, env, hasCopies }: RunOptions,
  onFall: (what: string) => void,
): Promise<Member[]> {
  const ports = network === null ? await freePorts(members) : [];
  const made: Member[] = [];
  // What killed members leave behind goes with the folder.
  const temporary = join(folder, 'tmp');
  await mkdir(temporary, { recursive: true });
  for (let i = 0; i < members; i++) {
    const own = join(folder, `member-${i}`);
    if (network !== null && hasCopies) await mountDisk(own);
    else await mkdir(own, { recursive: true });
    if (hasCopies) mkdirSync(join(own, 'data'), { recursive: true });
    const words = [
      '--storage',
      storage,
      '--insecure',
      '--chunk-size',
      CHUNK_SIZE,
      '--stream-existence-filter-size',
      '100000',
      ...(hasCopies ? ['--cluster-size', String(members), '--cluster-secret', SECRET] : []),
    ];
    made.push(
      new Member(
        {
          name: `member ${i}`,
          host: network?.address(i) ?? '127.0.0.1',
          port: ports[i] ?? PORT,
          folder: hasCopies ? join(own, 'data') : '',
          words,
          env: { ...env, TMPDIR: temporary },
          ...(network !== null && { before: network.before(i) }),
          logFile: join(folder, `member-${i}.log`),
        },
        onFall,
      ),
    );
  }
  return made;
}

/** Ids of the events of the streams that are kept, from the bucket itself. */
async function finalStreams(place: ObjectLocation): Promise<Map<string, string[]>> {
  const objects = await openObjects(place);
  const instance = await openObjectStore({
    objects,
    clock: systemClock,
    ids: systemIds,
    digests: nodeDigests,
    log: silentLog,
    meter: silentMeter,
  });
  const final = new Map<string, string[]>();
  for (let i = 0; i < KEPT_STREAMS; i++) {
    const stream = `kept-${i}`;
    final.set(stream, await idsOf(instance, stream));
  }
  await instance.close();
  await objects.close();
  return final;
}

/** Waits until all subscribers have seen everything, or the time is over. */
async function settled(
  subscribers: readonly Subscriber[],
  final: ReadonlyMap<string, readonly string[]>,
): Promise<void> {
  const untilMs = performance.now() + SETTLE_MS_MAX;
  const isMissing = (): boolean =>
    [...final].some(([stream, ids]) => subscribers.some((subscriber) => subscriber.missing(stream, ids) !== null));
  while (isMissing() && performance.now() < untilMs) await sleep(100);
}

function summary(
  startMs: number,
  problems: readonly string[],
  report: WritersReport,
  faults: Faults,
  scavenging: Scavenging,
  subscribers: readonly Subscriber[],
  final: ReadonlyMap<string, readonly string[]>,
  copies: CopiesReport | null,
): RunReport {
  const appends = report.operations.filter(({ asked }) => asked !== 'read');
  const of = (kind: string): number => appends.filter(({ outcome }) => outcome.kind === kind).length;
  const times = report.acknowledgedMs.toSorted((a, b) => a - b);
  const gaps = times
    .slice(1)
    .map((time, i) => [Math.round(times[i]! - startMs), Math.round(time - times[i]!)] as const)
    .toSorted((a, b) => b[1] - a[1])
    .slice(0, GAPS);
  return {
    problems,
    faults: faults.done,
    appends: appends.length,
    acknowledged: of('appended'),
    repeated: appends.filter(({ outcome }) => outcome.kind === 'appended' && outcome.isRepeat).length,
    conflicts: of('conflict'),
    undecided: of('unknown'),
    answers: report.answers,
    scavenging: scavenging.answers,
    deleted: scavenging.deleted,
    reads: { own: report.ownReads, late: report.lateOwnReads, leader: report.leaderReads, local: report.localReads },
    events: [...final.values()].reduce((sum, ids) => sum + ids.length, 0),
    seenBySubscribers: subscribers.reduce((sum, { events }) => sum + events, 0),
    connections: subscribers.reduce((sum, { connections }) => sum + connections, 0),
    longestGapMs: gaps[0]?.[1] ?? 0,
    gaps,
    copies,
  };
}
