import { mkdir } from 'node:fs/promises';
import { request } from 'node:http';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { Member } from '../cluster/processes/member.ts';
import { freePorts } from '../support/free-ports.ts';
import { s3ForTests } from '../support/s3/s3-for-tests.ts';

/** What the figures of clusters share. */
const MEMBERS = 3;
/** Longest that three members may take until one of them leads, in milliseconds. */
const READY_MS_MAX = 60_000;
const LOOK_MS = 10;

/** Where the log of a cluster lies. */
export interface SharedPlace {
  readonly kind: 'directory' | 's3';
  /** As `--storage` takes it. */
  readonly storage: string;
  readonly env: Readonly<Record<string, string>>;
  /** What to say of it in a note. */
  readonly note: string;
  close(): Promise<void>;
}

/** A fresh place, in the folder or in a bucket of a local S3 server. */
export async function sharedPlace(kind: 'directory' | 's3', folder: string): Promise<SharedPlace> {
  if (kind === 'directory')
    return { kind, storage: join(folder, 'objects'), env: {}, note: 'a directory', close: async () => {} };
  const s3 = await s3ForTests();
  return {
    kind,
    storage: `s3://${s3.bucket}/cluster`,
    env: { ...s3.env, AWS_ENDPOINT_URL_S3: s3.endpoint, AWS_REGION: s3.region },
    note: `the server is ${s3.kind}`,
    close: () => s3.close(),
  };
}

interface GossipDocument {
  readonly members: readonly { readonly httpEndPointPort: number; readonly state: string; readonly isAlive: boolean }[];
}

/** Three members in processes of their own, as they are started by default, without TLS and users. */
export class BenchCluster {
  readonly members: Member[] = [];
  readonly folder: string;

  private constructor(folder: string) {
    this.folder = folder;
  }

  /** Not started yet. */
  static async make(folder: string, place: SharedPlace, words: readonly string[] = []): Promise<BenchCluster> {
    const cluster = new BenchCluster(folder);
    const temporary = join(folder, 'tmp');
    await mkdir(temporary, { recursive: true });
    for (const [i, port] of (await freePorts(MEMBERS)).entries()) {
      const own = join(folder, `member-${i}`);
      await mkdir(own, { recursive: true });
      cluster.members.push(
        new Member({
          name: `member ${i}`,
          host: '127.0.0.1',
          port,
          folder: own,
          env: { ...place.env, TMPDIR: temporary },
          logFile: join(folder, `member-${i}.log`),
          words: [
            '--storage',
            place.storage,
            '--cluster-size',
            String(MEMBERS),
            '--cluster-secret',
            'a secret of this figure',
            '--insecure',
            ...words,
          ],
        }),
      );
    }
    return cluster;
  }

  static async start(folder: string, place: SharedPlace, words: readonly string[] = []): Promise<BenchCluster> {
    const cluster = await BenchCluster.make(folder, place, words);
    await cluster.startAll();
    return cluster;
  }

  /** Starts all at once; gives the milliseconds until all are ready and agree about who leads. */
  async startAll(): Promise<number> {
    const begin = performance.now();
    await Promise.all(this.members.map((member) => member.start()));
    await this.leader();
    return performance.now() - begin;
  }

  /** Waits until all that run are ready and name the same leader. */
  async leader(): Promise<Member> {
    const running = this.members.filter((member) => member.isRunning);
    for (const untilMs = performance.now() + READY_MS_MAX; performance.now() < untilMs; await sleep(LOOK_MS)) {
      const leaders = await Promise.all(running.map((member) => leaderSeenBy(member)));
      const [first] = leaders;
      if (first !== undefined && first !== null && leaders.every((port) => port === first))
        return this.members.find(({ options }) => options.port === first)!;
    }
    throw new Error(
      `There is no leader after ${READY_MS_MAX} ms.\n${running.map(({ name, log }) => `${name}: ${log}`).join('\n')}`,
    );
  }

  async followers(): Promise<Member[]> {
    const leader = await this.leader();
    return this.members.filter((member) => member !== leader && member.isRunning);
  }

  async stop(): Promise<void> {
    for (const member of this.members) await member.stop();
  }
}

/** Port of the leader as a member that is ready sees it; null for none. */
async function leaderSeenBy(member: Member): Promise<number | null> {
  if ((await get(`${member.url}/health/ready`)).status !== 200) return null;
  const { status, text } = await get(`${member.url}/gossip`);
  if (status !== 200) return null;
  return (
    (JSON.parse(text) as GossipDocument).members.find(({ state, isAlive }) => state === 'Leader' && isAlive)
      ?.httpEndPointPort ?? null
  );
}

/** Status 0 where nobody answers. */
export function get(url: string, method = 'GET'): Promise<{ status: number; text: string }> {
  return new Promise((resolve) => {
    const asked = request(url, { method, headers: method === 'GET' ? {} : { 'content-length': '0' } }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => {
        text += part;
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }));
      response.on('error', () => resolve({ status: 0, text }));
    });
    asked.on('error', () => resolve({ status: 0, text: '' }));
    asked.end();
  });
}
