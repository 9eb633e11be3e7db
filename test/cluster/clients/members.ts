import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { request as plainRequest } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { issueNode, issueRoot } from '../../support/certificates.ts';
import { freePorts } from '../../support/free-ports.ts';
import { Member } from '../processes/member.ts';

const SECRET = 'a secret of this test alone';
const ADMIN = `Basic ${Buffer.from('admin:changeit').toString('base64')}`;
/** Longest that members may need to be what they were asked to be, in milliseconds. */
const SETTLE_MS_MAX = 300_000;
const LOOK_MS = 50;
const ANSWER_MS = 5_000;
/** A member gives a resignation up after 5 s by itself, and says so then. */
const RESIGNED_MS = 300_000;

export type NodePreference = 'leader' | 'follower' | 'random' | 'readOnlyReplica';

/**
 * Three members and a read-only replica as processes of their own on the loopback, as users start them, with TLS and
 * users or without both.
 */
export class ClientCluster {
  readonly members: readonly Member[];
  readonly isSecure: boolean;
  readonly #folder: string;
  readonly #root: string | null;
  readonly problems: string[] = [];

  private constructor(
    folder: string,
    ports: readonly number[],
    root: string | null,
    env: Readonly<Record<string, string>>,
  ) {
    this.#folder = folder;
    this.#root = root;
    this.isSecure = root !== null;
    const file = (name: string): string => join(folder, name);
    const security =
      root === null
        ? ['--insecure', '--cluster-secret', SECRET]
        : [
            '--certificate-file',
            file('node.crt'),
            '--certificate-private-key-file',
            file('node.key'),
            '--trusted-root-certificates-path',
            file('roots'),
          ];
    mkdirSync(file('tmp'));
    this.members = ports.map(
      (port, i) =>
        new Member(
          {
            name: `member ${i}`,
            host: '127.0.0.1',
            port,
            folder: file(`member-${i}`),
            env: { TMPDIR: file('tmp'), ...env },
            logFile: file(`member-${i}.log`),
            words: [
              '--storage',
              file('objects'),
              '--cluster-size',
              '3',
              ...security,
              '--gossip-interval-ms',
              '200',
              '--chunk-size',
              '1MiB',
              '--stream-existence-filter-size',
              '100000',
              ...(i === 3 ? ['--read-only-replica'] : []),
            ],
          },
          (what) => this.problems.push(what),
        ),
    );
  }

  /** `env`: of all of them. */
  static async start(isSecure: boolean, count = 4, env: Readonly<Record<string, string>> = {}): Promise<ClientCluster> {
    const folder = mkdtempSync(join(tmpdir(), 'skua-cluster-clients-'));
    let root: string | null = null;
    if (isSecure) {
      const authority = await issueRoot();
      const { cert, key } = await issueNode(authority, 'localhost', { ips: ['127.0.0.1'], dns: ['localhost'] });
      mkdirSync(join(folder, 'roots'));
      for (const [name, text] of Object.entries({
        'node.crt': cert,
        'node.key': key,
        'roots/root.crt': authority.cert,
      }))
        writeFileSync(join(folder, name), text);
      root = authority.cert;
    }
    const cluster = new ClientCluster(folder, await freePorts(count), root, env);
    try {
      await Promise.all(cluster.members.map((member) => member.start()));
      await cluster.settled();
      return cluster;
    } catch (error) {
      await cluster.stop();
      throw error;
    }
  }

  /**
   * As users write it: with all members, or with one name to ask for them (`isDiscovered`), which is that of the
   * replica.
   */
  connectionString(scheme: string, preference: NodePreference, isDiscovered: boolean): string {
    const names = isDiscovered
      ? `localhost:${this.members.at(-1)!.options.port}`
      : this.members.map(({ options: { port } }) => `127.0.0.1:${port}`).join(',');
    const security = this.isSecure
      ? `tlsCaFile=${encodeURIComponent(join(this.#folder, 'roots/root.crt'))}`
      : 'tls=false';
    return `${scheme}${isDiscovered ? '+discover' : ''}://${this.isSecure ? 'admin:changeit@' : ''}${names}?${security}&nodePreference=${preference}&maxDiscoverAttempts=200&discoveryInterval=100`;
  }

  /** The state of a running member, as it says itself; null where it does not answer. */
  async stateOf(member: Member): Promise<string | null> {
    try {
      return (JSON.parse(await this.#ask(member, 'GET', '/info')) as { state: string }).state;
    } catch {
      return null;
    }
  }

  /** The member that leads, waited for. */
  async leader(): Promise<Member> {
    for (const untilMs = Date.now() + SETTLE_MS_MAX; Date.now() < untilMs; await sleep(LOOK_MS)) {
      for (const member of this.members)
        if (member.isRunning && (await this.stateOf(member)) === 'leader') return member;
    }
    throw this.#never('Nobody leads.');
  }

  /** Resolves when one member leads and all that run follow it. */
  async settled(): Promise<void> {
    let states: readonly (string | null)[] = [];
    for (const untilMs = Date.now() + SETTLE_MS_MAX; Date.now() < untilMs; await sleep(LOOK_MS)) {
      states = await Promise.all(
        this.members.filter(({ isRunning }) => isRunning).map((member) => this.stateOf(member)),
      );
      if (
        states.filter((state) => state === 'leader').length === 1 &&
        states.every((state) => state === 'leader' || state === 'follower' || state === 'readonlyreplica')
      )
        return;
    }
    throw this.#never(`The members are ${states.join(', ')}.`);
  }

  #never(what: string): Error {
    return new Error(
      [
        `${what} Their threads, and the ends of their logs:`,
        ...this.members.map(({ name, threads, log }) => `${name}: ${threads}\n${log}`),
      ].join('\n'),
    );
  }

  async resign(member: Member): Promise<void> {
    await this.#ask(member, 'POST', '/admin/node/resign', RESIGNED_MS);
  }

  #ask(member: Member, method: string, path: string, timeout = ANSWER_MS): Promise<string> {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const outgoing = (this.isSecure ? request : plainRequest)(
      {
        host: '127.0.0.1',
        port: member.options.port,
        method,
        path,
        timeout,
        headers: { accept: 'application/json', 'content-length': '0', ...(this.isSecure && { authorization: ADMIN }) },
        ...(this.#root !== null && { ca: this.#root }),
      },
      (incoming) => {
        let text = '';
        incoming.on('data', (part: Buffer) => {
          text += part.toString();
        });
        incoming.on('error', reject);
        incoming.on('end', () =>
          incoming.statusCode === 200
            ? resolve(text)
            : reject(new Error(`${path} answers ${incoming.statusCode}: ${text}`)),
        );
      },
    );
    outgoing.on('timeout', () => outgoing.destroy(new Error('no answer')));
    outgoing.on('error', reject);
    outgoing.end();
    return promise;
  }

  async stop(): Promise<void> {
    await Promise.all(this.members.map((member) => member.stop()));
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
