import { execFileSync, spawn, spawnSync } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { closeSync, openSync, readlinkSync, statfsSync, unlinkSync, writeSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * A network, disks and processes of the test's own: namespaces of the Linux kernel, which end, with all that is in
 * them, when the test does. The test runs inside, at one end of a bridge; each member has a network namespace of its
 * own at another.
 */

/** Also for others than root, where the kernel lets them. */
const FLAGS: readonly string[] = [
  ...(process.getuid?.() === 0 ? [] : ['--user', '--map-root-user']),
  '--net',
  '--mount',
  '--pid',
  '--fork',
  '--kill-child',
  '--mount-proc',
];
const TRIAL =
  'ip link add name trial0 type bridge && ip link add name trial1 type veth peer name trial2 && mount -t tmpfs -o size=1m none /tmp && fallocate -l 4096 /tmp/f';

/** Why there can be no namespaces here, or null where there can. */
export function whyNotIsolated(): string | null {
  if (process.platform !== 'linux') return 'network namespaces are Linux';
  const { status, stderr, error } = spawnSync('unshare', [...FLAGS, 'sh', '-c', TRIAL], { encoding: 'utf8' });
  if (status === 0) return null;
  return `network namespaces are not allowed here: ${error?.message ?? stderr.trim().split('\n').at(-1) ?? `unshare ended with ${status}`}`;
}

/** Runs a program of this run's Node.js, inside if that is possible, with this process's output. */
export function spawnInside(
  args: readonly string[],
  isIsolated: boolean,
  env: Readonly<Record<string, string>>,
): ChildProcess {
  const line = [...(isIsolated ? ['unshare', ...FLAGS] : []), process.execPath, ...args];
  return spawn(line[0]!, line.slice(1), { stdio: ['ignore', 'inherit', 'inherit'], env: { ...process.env, ...env } });
}

type Place = { readonly host: string; readonly port: number } | { readonly path: string };

/** Takes connections and passes on their bytes both ways. */
export class Relay {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(server: Server) {
    this.#server = server;
  }

  static async open(listen: Place, to: Place): Promise<Relay> {
    const server = createServer({ allowHalfOpen: true });
    const relay = new Relay(server);
    server.on('connection', (near) => {
      const far = connect({ ...to, allowHalfOpen: true });
      for (const [one, other] of [
        [near, far],
        [far, near],
      ] as const) {
        relay.#sockets.add(one);
        one.setNoDelay(true);
        one.on('error', () => {
          one.destroy();
          other.destroy();
        });
        one.on('close', () => {
          relay.#sockets.delete(one);
          other.destroy();
        });
        one.pipe(other);
      }
    });
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(listen, resolve);
    });
    return relay;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => {
      this.#server.close(resolve);
    });
  }
}

const BRIDGE = 'members';
/** Of the clients, and of the bucket. */
const CLIENTS_ADDRESS = '10.77.0.1';
export const BUCKET_ADDRESS = '10.77.1.1';
/** A device that nobody has. */
const NOWHERE = '02:00:00:00:00:01';
/** Size of the disk of a member, in MiB. */
const DISK_MIB = 384;

function ip(...words: string[]): void {
  execFileSync('ip', words, { stdio: ['ignore', 'ignore', 'pipe'] });
}

/**
 * The network inside: members at 10.77.0.11 and on, the bucket at 10.77.1.1, each of which can be made silent to any
 * other.
 */
export class Network {
  readonly #holders: ChildProcess[] = [];

  static async make(members: number): Promise<Network> {
    const network = new Network();
    ip('link', 'set', 'lo', 'up');
    ip('link', 'add', 'name', BRIDGE, 'type', 'bridge');
    for (const address of [CLIENTS_ADDRESS, BUCKET_ADDRESS]) ip('address', 'add', `${address}/16`, 'dev', BRIDGE);
    ip('link', 'set', BRIDGE, 'up');
    for (let i = 0; i < members; i++) await network.#join(i);
    return network;
  }

  address(member: number): string {
    return `10.77.0.${11 + member}`;
  }

  /** The command in front of another one that shall run as this member. */
  before(member: number): string[] {
    return ['nsenter', `--net=/proc/${this.#holders[member]!.pid}/ns/net`];
  }

  async #join(member: number): Promise<void> {
    // A process that holds the namespace while members come and go in it.
    const holder = spawn('unshare', ['--net', 'sleep', 'infinity'], { stdio: 'ignore' });
    this.#holders.push(holder);
    const own = readlinkSync('/proc/self/ns/net');
    while (readlinkSync(`/proc/${holder.pid}/ns/net`) === own) await sleep(5);
    ip('link', 'add', 'name', `member${member}`, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', String(holder.pid));
    ip('link', 'set', `member${member}`, 'master', BRIDGE, 'up');
    for (const words of [
      ['link', 'set', 'lo', 'up'],
      ['address', 'add', `${this.address(member)}/16`, 'dev', 'eth0'],
      ['link', 'set', 'eth0', 'up'],
    ])
      this.#inside(member, words);
  }

  #inside(member: number, words: readonly string[]): void {
    const [command, ...rest] = [...this.before(member), 'ip', ...words];
    execFileSync(command!, rest, { stdio: ['ignore', 'ignore', 'pipe'] });
  }

  /** What a member sends there is lost, and nobody is told: packets go to a device that is not there. */
  cut(member: number, to: string): void {
    this.#inside(member, ['neighbour', 'replace', to, 'lladdr', NOWHERE, 'dev', 'eth0', 'nud', 'permanent']);
  }

  heal(member: number, to: string): void {
    this.#inside(member, ['neighbour', 'delete', to, 'dev', 'eth0']);
  }

  /** Neither of two members hears the other. */
  part(a: number, b: number): void {
    this.cut(a, this.address(b));
    this.cut(b, this.address(a));
  }

  join(a: number, b: number): void {
    this.heal(a, this.address(b));
    this.heal(b, this.address(a));
  }

  unplug(member: number): void {
    ip('link', 'set', `member${member}`, 'down');
  }
  plug(member: number): void {
    ip('link', 'set', `member${member}`, 'up');
  }

  close(): void {
    for (const holder of this.#holders) holder.kill('SIGKILL');
  }
}

/** A disk of limited size, in memory, mounted inside only. */
export async function mountDisk(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_MIB}m`, 'none', folder], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
}

/** Takes all the room that is left on a disk, until `emptyDisk`. */
export function fillDisk(folder: string): void {
  const { bavail, bsize } = statfsSync(folder);
  const path = join(folder, FILLER);
  // The member writes meanwhile: the last bytes are taken one block after another.
  if (bavail * bsize > 2 * LAST_BYTES)
    execFileSync('fallocate', ['-l', String(bavail * bsize - LAST_BYTES), path], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
  const file = openSync(path, 'a');
  try {
    for (const block = Buffer.alloc(bsize); ;) writeSync(file, block);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  } finally {
    closeSync(file);
  }
}

export function emptyDisk(folder: string): void {
  unlinkSync(join(folder, FILLER));
}

/** Beside the data directory. */
const FILLER = 'filler';
const LAST_BYTES = 8_388_608;
