import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { createServer } from 'node:net';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';
import { makeFolder, PRIVATE_FOLDER_MODE } from '../../infra/fs/make-folder.ts';
import { bundled } from '../../infra/runtime/version.ts';

/** Members of a cluster for trying out, as processes of this machine. */

/** Between the ports of two members. */
const PORT_STEP = 10;
const LISTENING = /is listening on (https?:\/\/\S+)\n/;
/** Of what a member says before it listens. */
const OUTPUT_LENGTH_MAX = 65_536;
/** Of the end of its log, for a member that ended. */
const LAST_LINES_LENGTH_MAX = 2_000;

export interface MemberLocation {
  readonly port: number;
  readonly db: string;
  readonly logFile: string;
}

/** Where the members of a try-out have their ports, copies and log files. */
export async function placesOf(root: string, count: number, firstPort: number): Promise<readonly MemberLocation[]> {
  const places: MemberLocation[] = [];
  for (let i = 0; i < count; i++) {
    const wanted = firstPort + i * PORT_STEP;
    const taken = new Set(places.map(({ port }) => port));
    let port = (await isFree(wanted)) ? wanted : await freePort();
    while (taken.has(port)) port = await freePort();
    places.push({ port, db: path.join(root, `node${i + 1}`), logFile: path.join(root, `node${i + 1}.log`) });
  }
  return places;
}

function isFree(port: number): Promise<boolean> {
  return listening(port).then((found) => found !== null);
}

async function freePort(): Promise<number> {
  return (await listening(0))!;
}

/** The port that could be listened on; null when it is taken. */
function listening(port: number): Promise<number | null> {
  const server = createServer();
  return new Promise((resolve) => {
    server.on('error', () => resolve(null));
    server.listen(port, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : null));
    });
  });
}

export interface MemberOptions {
  readonly place: MemberLocation;
  readonly storage: string;
  readonly clusterSize: number;
  readonly secret: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** What makes this program of Node.js: the sources in a checkout, the bundle in a package. */
const PROGRAM = [
  '--max-semi-space-size=16',
  '--initial-old-space-size=64',
  fileURLToPath(bundled('./main.js') ?? new URL('../main.ts', import.meta.url)),
];

/** A member in a process of its own. */
export class TryOutMember {
  readonly place: MemberLocation;
  readonly pid: number | null;
  /** Resolves with its address once it serves, or with null when it ended before. */
  readonly started: Promise<string | null>;
  /** Resolves with how it ended: an exit code, or a signal. */
  readonly ended: Promise<number | NodeJS.Signals>;
  url: string | null = null;
  isRunning = true;
  #lastLines = '';
  readonly #child: ChildProcess;

  constructor({ place, storage, clusterSize, secret, env }: MemberOptions) {
    this.place = place;
    const words = [
      'start',
      '--disable-tls',
      '--storage',
      storage,
      '--db',
      place.db,
      '--cluster-size',
      String(clusterSize),
      '--node-port',
      String(place.port),
    ];
    // A group of its own: Ctrl+C of the terminal goes to the command alone, which ends the members in order.
    const child = spawn(process.execPath, [...PROGRAM, ...words], {
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...env, SERVER_CLUSTER_SECRET: secret },
    });
    this.#child = child;
    this.pid = child.pid ?? null;
    const log = createWriteStream(place.logFile, { flags: 'a' });
    // A log that can't be written is no reason to end a member.
    log.on('error', () => {});
    child.stderr.on('data', (part: Buffer) => {
      log.write(part);
      this.#lastLines = (this.#lastLines + part.toString()).slice(-LAST_LINES_LENGTH_MAX);
    });
    this.ended = new Promise((resolve) => {
      child.on('error', (error) => {
        this.#lastLines = `${error.message}\n`;
        resolve(1);
      });
      child.on('close', (code, signal) => resolve(signal ?? code ?? 1));
    }).then((how) => {
      this.isRunning = false;
      log.end();
      return how as number | NodeJS.Signals;
    });
    const listens = new Promise<string>((resolve) => {
      let said = '';
      child.stdout.on('data', (part: Buffer) => {
        if (this.url !== null) return;
        said = (said + part.toString()).slice(-OUTPUT_LENGTH_MAX);
        const found = LISTENING.exec(said);
        if (found === null) return;
        this.url = found[1]!;
        resolve(this.url);
      });
    });
    this.started = Promise.race([listens, this.ended.then(() => this.url)]);
  }

  /** What it logged last, at most a few lines. */
  lastLines(count = 3): string {
    return this.#lastLines.trimEnd().split('\n').slice(-count).join('\n');
  }

  /** Asks it to end in good order, and waits for that. */
  async stop(): Promise<void> {
    if (this.isRunning) this.#child.kill('SIGTERM');
    await this.ended;
  }

  /** Ends it at once. */
  kill(): void {
    if (this.isRunning) this.#child.kill('SIGKILL');
  }
}

/** Makes the directories of a try-out: what is made anew is for its owner only. */
export async function makePlaces(root: string): Promise<void> {
  await makeFolder(root, PRIVATE_FOLDER_MODE);
  await makeFolder(path.join(root, 'log'));
}
