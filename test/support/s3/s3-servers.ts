import { spawn } from 'node:child_process';
import { access, appendFile } from 'node:fs/promises';
import { request } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { containers } from './containers.ts';
import { InProcessS3 } from './in-process-s3.ts';

export type S3Kind = 'environment' | 'localstack' | 'ceph' | 'in-process';

export interface S3Server {
  readonly kind: S3Kind;
  readonly endpoint: string;
  readonly region: string;
  /** Credentials and region, as the SDK reads them from the environment. */
  readonly env: Readonly<Record<string, string>>;
  close(): Promise<void>;
}

/** Why a server was not used. */
export class NotThere extends Error {}

/** Longest a start may take, within the time that test hooks have. */
const START_MS_MAX = 180_000;
/** Longest a container engine may take to say that it is there. */
const ENGINE_MS_MAX = 1_000;
/** The last line of images that runs without a token and knows conditional writes. */
const LOCALSTACK_IMAGE = 'localstack/localstack:3.8.1';
const SCRIPT = fileURLToPath(new URL('s3-server.sh', import.meta.url));

export async function fromEnvironment(): Promise<S3Server> {
  const endpoint = process.env['S3_ENDPOINT'] ?? process.env['AWS_ENDPOINT_URL_S3'];
  if (endpoint === undefined) throw new NotThere('no S3_ENDPOINT is set');
  const region = process.env['AWS_REGION'] ?? 'us-east-1';
  const { SKUA_TEST_S3_KEY: key = '', SKUA_TEST_S3_SECRET: secret = '' } = process.env;
  return {
    kind: 'environment',
    endpoint,
    region,
    env: key === '' ? {} : { ...credentials(key, secret), AWS_REGION: region },
    close: async () => {},
  };
}

export async function inProcess(): Promise<S3Server> {
  const s3 = await InProcessS3.start();
  return {
    kind: 'in-process',
    endpoint: s3.endpoint,
    region: 'us-east-1',
    env: credentials('in-process', 'in-process'),
    close: () => s3.close(),
  };
}

/** One container for all processes of a run: it is found again by its settings, and the run's end stops it. */
export async function localstack(runFolder: string | undefined): Promise<S3Server> {
  await engineAnswers();
  const tools = await containers();
  if (tools === null) throw new NotThere('test/containers is not installed: `npm run install:containers` does that');
  const starting = tools.startLocalstack(LOCALSTACK_IMAGE);
  const container = await withinTime(
    starting,
    'the container did not start in time; its image may still be on its way',
  );
  if (runFolder !== undefined) await appendFile(join(runFolder, 'containers'), `${container.id}\n`);
  return {
    kind: 'localstack',
    endpoint: container.endpoint,
    region: 'us-east-1',
    env: credentials('test', 'test'),
    close: async () => {
      if (runFolder === undefined) await container.stop();
    },
  };
}

/**
 * Ceph's gateway, unpacked from Debian's packages: started by the first process of a run, found again by the others.
 */
export async function ceph(runFolder: string | undefined): Promise<S3Server> {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) throw new NotThere('Ceph needs root on Linux');
  await access('/usr/bin/apt-get').catch(() => {
    throw new NotThere('Ceph needs apt-get');
  });
  const exported = await runScript('start', runFolder);
  const { S3_ENDPOINT: endpoint, AWS_REGION: region, AWS_ACCESS_KEY_ID: key, AWS_SECRET_ACCESS_KEY: secret } = exported;
  if (endpoint === undefined || region === undefined || key === undefined || secret === undefined)
    throw new NotThere('the script gave no endpoint');
  return {
    kind: 'ceph',
    endpoint,
    region,
    env: { ...credentials(key, secret), AWS_REGION: region },
    close: async () => {},
  };
}

/** Runs the script; resolves with what it exported. Ends only the process that was started here. */
export function runScript(command: 'start' | 'stop', runFolder: string | undefined): Promise<Record<string, string>> {
  return new Promise((resolve, reject) => {
    const env = { ...process.env, ...(runFolder !== undefined && { S3_DIR: join(runFolder, 'ceph') }) };
    const child = spawn('bash', [SCRIPT, command], { env, stdio: ['ignore', 'pipe', 'pipe'] });
    let out = '',
      errors = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      out += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      errors += text;
    });
    const timer = setTimeout(() => {
      child.kill();
      reject(new NotThere(`${SCRIPT} took longer than ${START_MS_MAX} ms`));
    }, START_MS_MAX);
    child.once('error', (error) => {
      clearTimeout(timer);
      reject(new NotThere(error.message));
    });
    child.once('exit', (code) => {
      clearTimeout(timer);
      if (code === 0)
        resolve(
          Object.fromEntries([...out.matchAll(/^export (\w+)=(.*)$/gm)].map(([, name, value]) => [name!, value!])),
        );
      else reject(new NotThere(`${SCRIPT} ended with ${code}: ${errors.trim().split('\n').at(-1) ?? ''}`));
    });
  });
}

function credentials(key: string, secret: string): Record<string, string> {
  return { AWS_ACCESS_KEY_ID: key, AWS_SECRET_ACCESS_KEY: secret, AWS_REGION: 'us-east-1' };
}

/** A command that is installed says nothing: the engine itself has to answer. */
async function engineAnswers(): Promise<void> {
  const host = process.env['DOCKER_HOST'];
  const runtime = process.env['XDG_RUNTIME_DIR'];
  const sockets =
    host !== undefined
      ? [host]
      : [
          '/var/run/docker.sock',
          ...(runtime === undefined ? [] : [`${runtime}/docker.sock`, `${runtime}/podman/podman.sock`]),
        ];
  const answers = await Promise.all(sockets.map(pings));
  if (!answers.includes(true)) throw new NotThere('no container engine answers');
}

function pings(host: string): Promise<boolean> {
  const url = host.includes('://') ? new URL(host) : null;
  const where =
    url === null
      ? { socketPath: host }
      : url.protocol === 'unix:'
        ? { socketPath: url.pathname }
        : { host: url.hostname, port: url.port };
  return new Promise((resolve) => {
    const ping = request({ ...where, path: '/_ping', timeout: ENGINE_MS_MAX }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    ping
      .on('timeout', () => ping.destroy())
      .on('error', () => resolve(false))
      .end();
  });
}

async function withinTime<T>(work: Promise<T>, otherwise: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new NotThere(otherwise)), START_MS_MAX);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
