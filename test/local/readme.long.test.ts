import { spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import * as path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { COMMANDS } from '../../local/commands/all-commands.ts';
import { NODE_MIN } from '../../local/node-version.mjs';
import { issueNode, issueRoot } from '../support/certificates.ts';
import { freePorts } from '../support/free-ports.ts';
import { InProcessS3 } from '../support/s3/in-process-s3.ts';
import { LEFTOVERS, ok, packed } from './packed.ts';
import type { Packed } from './packed.ts';
import { readmeSteps } from './readme-blocks.ts';
import type { Step } from './readme-blocks.ts';
import { ROOT } from './spawn.ts';
import type { Spawned } from './spawn.ts';

/**
 * A walk through the README: every command of every block is run as it stands there, in one folder, one after the
 * other. Those that name `skua` or `curl` meet the packed package, the others a clone. What is changed are addresses (a
 * free port in place of 2113), and no more.
 */

const ADDRESS = 'http://127.0.0.1:2113';
const README = readFileSync(`${ROOT}/README.md`, 'utf8');
const steps = readmeSteps();
const has = (program: string) => spawnSync(program, ['--version']).status === 0;
const hasPodman = has('podman');

/** What is not run as it stands there, and why. Each has to be in the README. */
const NOT_HERE: Readonly<Record<string, string>> = {
  'npm ci && npm start':
    'It installs. What it starts is started by the first command of the webhooks, and by the one on a bucket.',
  'npm ci && npm test': 'It installs, and runs the tests, of which this is one.',
  'npm pack': 'Done before all others here: what it packs is what they run.',
  'npm install ./skua-0.1.0.tgz': 'Done before all others here, without a network.',
  'npm run deploy': 'It deploys to an account.',
};
/** Builds and runs an image. */
const CONTAINERS = /^podman /;
/** Commands that stay until they are ended, and what they say when they are there. */
const SERVERS: readonly (readonly [RegExp, RegExp])[] = [
  [/\bnpm start\b|^npx skua start(?!.*--what-if)/, /is listening on (\S+)\n/],
  [/^npx skua functions serve/, /The functions answer at (\S+),/],
  [/^npm run cluster$/, /^(http:\S+) {2}data /m],
];
/** Members of a cluster, which stay beside each other until the last command that names one of them. */
const MEMBER = /^npx skua start .*--cluster-size .*--node-port (\d+)$/;

let all: Packed;
let walk: string;
let s3: InProcessS3;
let node: { readonly spawned: Spawned; readonly url: string };
/** By the port that the README gives them. */
const members = new Map<string, Spawned>();

beforeAll(async () => {
  all = await packed();
  walk = all.installed;
  s3 = await InProcessS3.start();
  await fetch(`${s3.endpoint}/bucket`, { method: 'PUT', headers: { authorization: 'any' } });
  node = await start({});
});

afterAll(async () => {
  await endMembers();
  await node.spawned.end();
  await s3.close();
  await all.remove();
});

/** The node of the walk, by what `npm start` is for a checkout. */
async function start(env: Readonly<Record<string, string>>): Promise<typeof node> {
  const spawned = all.shell('exec skua start --disable-tls', {
    cwd: walk,
    isServer: true,
    env: { ...env, SERVER_NODE_PORT: '0' },
  });
  return { spawned, url: (await spawned.seen(/is listening on (\S+)\n/))[1]! };
}

const s3Place = () => ({
  AWS_ENDPOINT_URL_S3: s3.endpoint,
  AWS_REGION: 'us-east-1',
  AWS_ACCESS_KEY_ID: 'a',
  AWS_SECRET_ACCESS_KEY: 'b',
});

/** Starts a member on any free port; the next command that asks one waits for all. */
function startMember({ command, exported }: Step, port: string): void {
  members.set(
    port,
    all.shell(command.replace(/^npx skua /, 'exec skua ').replace(port, '0'), {
      cwd: walk,
      isServer: true,
      env: { ...exported, ...s3Place(), SERVER_STREAM_EXISTENCE_FILTER_SIZE: '10000' },
    }),
  );
}

async function endMembers(): Promise<void> {
  for (const member of members.values()) expect((await member.end()).code).toBe(0);
  members.clear();
}

/** A command to members: once the cluster is whole. */
async function runAmongMembers(step: Step): Promise<void> {
  let { command } = step;
  for (const [port, member] of members)
    command = command.replaceAll(`http://127.0.0.1:${port}`, (await member.seen(/is listening on (\S+)\n/))[1]!);
  if (command.includes(' cluster status'))
    await ok(
      all.shell(
        `for i in $(seq 1200); do ${command.replace('npx ', '')} >/dev/null && exit 0; sleep 0.5; done; ${command.replace('npx ', '')}`,
        { cwd: walk },
      ).ended,
    );
  await run({ ...step, command });
}

async function run({ command, expected, exported, section }: Step): Promise<void> {
  const isCurl = command.startsWith('curl ');
  // The package lies in this folder; elsewhere npx would find it there in half a second, each time.
  const line = command
    .replaceAll(ADDRESS, node.url)
    .replace(/\bnpx skua /, 'skua ')
    .replace(/^curl/, 'exec curl -sS');
  const cwd = command.startsWith('npm ') ? all.clone : walk;
  const spawned = all.shell(line, {
    cwd,
    env: { SKUA_NODE: node.url, ...exported, ...(command.includes('s3://') && s3Place()) },
  });
  if (isCurl && command.includes(' -N ')) {
    // A subscription never ends by itself.
    await Promise.all(expected.map((text) => spawned.seen(new RegExp(`^${text}$`, 'm'))));
    spawned.child.kill('SIGTERM');
    await spawned.ended;
    return;
  }
  const { code, out, err } = await spawned.ended;
  expect({ code, err: code === 0 ? '' : err }, `${section}: ${command}`).toEqual({ code: 0, err: '' });
  if (isCurl) expect(err).toBe('');
  for (const text of expected) expect(out.replaceAll(node.url, ADDRESS)).toContain(text);
}

/** Runs what stays until it is ended, ends it as Ctrl+C does, and looks that it ends well. */
async function serve({ command }: Step, seen: RegExp): Promise<void> {
  const port = command.includes('functions')
    ? ' --port 0'
    : command === 'npm run cluster'
      ? ` -- --port ${(await freePorts(1))[0]}`
      : '';
  const spawned = all.shell(command.replace(/\bnpx skua /, 'exec skua ') + port, {
    cwd: command.includes('npm ') ? all.clone : walk,
    isServer: true,
    env: { SERVER_NODE_PORT: '0', ...(!command.includes('--storage') && { SERVER_DB: './beside' }), ...s3Place() },
  });
  const [, url] = await spawned.seen(seen);
  const reply = await fetch(`${url}/streams/%24all`, {
    headers: { authorization: `Basic ${btoa('admin:changeit')}`, accept: 'application/json' },
  });
  expect(reply.status).toBe(200);
  await reply.body?.cancel();
  const { code, out, err } = await spawned.end();
  // npm itself is ended by the signal, whatever its script does.
  if (command === 'npm run cluster') expect(out).toContain('All members have stopped.');
  else if (command.includes('npm ')) expect(err).toContain('"stopped"');
  else expect(code).toBe(0);
  const token = /^SERVER_CONNECTORS__DATA_PROTECTION__TOKEN='([^']+)'/.exec(command)?.[1];
  if (token === undefined) return;
  // From here on the node of the walk has it.
  await node.spawned.end();
  node = await start({ SERVER_CONNECTORS__DATA_PROTECTION__TOKEN: token });
}

/** Builds the image, or runs it until it is healthy. */
async function runContainer(command: string): Promise<void> {
  if (!command.startsWith('podman run '))
    return void (await ok(all.shell(command, { cwd: all.clone, env: { npm_config_offline: undefined } }).ended));
  const [root, volume] = [await issueRoot(), `skua-${randomUUID()}`];
  const { cert, key } = await issueNode(root);
  const files = {
    'tls/node.crt': cert,
    'tls/node.key': key,
    'tls/ca/root.crt': root.cert,
    'first-start.env': 'SERVER_DEFAULT_ADMIN_PASSWORD=of-admin\nSERVER_DEFAULT_OPS_PASSWORD=of-ops\n',
    'tls/skua.conf':
      'CertificateFile: /etc/skua/node.crt\nCertificatePrivateKeyFile: /etc/skua/node.key\nTrustedRootCertificatesPath: /etc/skua/ca\n',
  };
  mkdirSync(path.join(all.clone, 'tls/ca'), { recursive: true });
  for (const [name, text] of Object.entries(files)) writeFileSync(path.join(all.clone, name), text);
  const { out } = await ok(
    all.shell(command.replace('-p 2113:2113', '-p 127.0.0.1::2113').replace('skua-data:', `${volume}:`), {
      cwd: all.clone,
    }).ended,
  );
  try {
    await ok(
      all.shell(
        `for i in $(seq 1200); do podman exec ${out.trim()} node /opt/skua/healthcheck.mjs && exit 0; sleep 0.3; done; podman logs ${out.trim()}; exit 1`,
        { cwd: all.clone },
      ).ended,
    );
  } finally {
    await all.shell(`podman rm -f ${out.trim()}; podman volume rm ${volume}`, { cwd: all.clone }).ended;
  }
}

describe.skipIf(!has('curl'))('the README', () => {
  test('has commands, and every block says what it is', () => {
    expect(steps.length).toBeGreaterThan(65);
    expect(README.match(/^```$/gm)).toHaveLength([...README.matchAll(/^```(?:sh|console|js)$/gm)].length);
    for (const command of Object.keys(NOT_HERE)) expect(steps.map((step) => step.command)).toContain(command);
  });

  test.for(steps.map((step, i) => [i + 1, step.section, step.command.split('\n')[0]!, step] as const))(
    '%i %s: %s',
    async ([, , , step], { skip }) => {
      const { command, expected, language } = step;
      const reason = NOT_HERE[command];
      if (reason !== undefined) skip(reason);
      if (CONTAINERS.test(command)) return hasPodman ? await runContainer(command) : skip('podman is not here.');
      const port = MEMBER.exec(command)?.[1];
      if (port !== undefined) return startMember(step, port);
      if ([...members.keys()].some((each) => command.includes(`127.0.0.1:${each}`))) return await runAmongMembers(step);
      await endMembers();
      const server = SERVERS.find(([which]) => which.test(command));
      if (server !== undefined) return await serve(step, server[1]);
      // What writes a file for a later step prints nothing.
      if (language === 'sh' && !/ > \S+$/.test(command)) expect(expected.length).toBeGreaterThan(0);
      // "Once the node has stopped"; and then it is started again.
      const isStopped = command.startsWith('npx skua verify');
      if (isStopped) expect((await node.spawned.end()).code).toBe(0);
      await run(step);
      if (isStopped) node = await start({});
    },
  );
});

describe('the package', () => {
  test('holds what runs and what is read about it, and nothing that work has left in the checkout', () => {
    const files = all.told.files.map((file) => file.path);
    expect(files).toEqual(
      expect.arrayContaining([
        'package.json',
        'LICENSE',
        'README.md',
        'ARCHITECTURE.md',
        'local/skua.mjs',
        'dist/main.js',
        'dist/worker.js',
        'dist/sandbox-worker.js',
        'dist/quickjs.wasm',
        'dist/THIRD-PARTY.txt',
        'dist/functions/tick/index.mjs',
        'infra/packaging/skua.service',
      ]),
    );
    for (const left of LEFTOVERS) expect(files).not.toContain(left);
    expect(files.filter((file) => /(?:^|\/)(?:test|node_modules)\/|(?<!\.d)\.ts$|\.(?:tmp|tgz)$/.test(file))).toEqual(
      [],
    );
    // Bundles that people debug have a source map, and surfaces have declarations.
    expect(files).toEqual(
      expect.arrayContaining([
        'CHANGELOG.md',
        'dist/main.js.map',
        'dist/embedded.js',
        'dist/embedded.js.map',
        'dist/types/local/embedded/index.d.ts',
      ]),
    );
    expect(files.filter((file) => file.endsWith('.map') && !/^dist\/[^/]+\.js\.map$/.test(file))).toEqual([]);
  });

  test('has all that its README links to', () => {
    const links = [...README.matchAll(/\]\(([^):#]+)(?:#[^)]*)?\)/g)].map(([, link]) => link!);
    const isPicture = (link: string) => link.endsWith('.webp');
    expect(links.filter((link) => !isPicture(link)).length).toBeGreaterThan(3);
    const files = all.told.files.map((file) => file.path);
    expect(files).toEqual(expect.arrayContaining(links.filter((link) => !isPicture(link))));
    // These are for who reads it where the sources are.
    expect(links.filter(isPicture)).toHaveLength(3);
    for (const picture of links.filter(isPicture))
      expect([picture, existsSync(path.join(ROOT, picture)), files.includes(picture)]).toEqual([picture, true, false]);
  });

  test('needs no other packages, and says the truth about Node.js', () => {
    const about = JSON.parse(readFileSync(path.join(walk, 'node_modules/skua/package.json'), 'utf8')) as {
      engines: { node: string };
      dependencies?: object;
      devDependencies: { node: string };
    };
    expect(about.dependencies).toBeUndefined();
    expect(about.engines.node).toBe(`>=${NODE_MIN}`);
    expect(readdirSync(path.join(walk, 'node_modules')).filter((name) => !name.startsWith('.'))).toEqual(['skua']);
    expect(README).toContain(`Node.js, ${NODE_MIN.replace(/\.0$/, '')} or later`);
  });

  test('has the parts that only some nodes load: traces, log files, the audit', async () => {
    const spawned = all.shell('exec skua start --disable-tls --mem-db --log logs --audit-log audit.json', {
      cwd: walk,
      isServer: true,
      env: { SERVER_NODE_PORT: '0', OTEL_TRACES_EXPORTER: 'console' },
    });
    const [, url] = await spawned.seen(/is listening on (\S+)\n/);
    const filtered = await fetch(`${url}/streams/%24all/filtered?context=EventType&type=Regex&data=%5Enone`, {
      headers: { authorization: `Basic ${btoa('admin:changeit')}`, accept: 'application/vnd.eventstore.atom+json' },
    });
    expect([filtered.status, ((await filtered.json()) as { entries: unknown[] }).entries]).toEqual([200, []]);
    await spawned.seen(/'http\.route'/);
    expect((await spawned.end()).code).toBe(0);
    expect(readdirSync(walk)).toEqual(
      expect.arrayContaining(['logs', expect.stringMatching(/^audit\d+\.json$/) as string]),
    );
  });

  test('npx finds its command', async () => {
    expect((await ok(all.shell('npx skua help', { cwd: walk }).ended)).out).toMatch(/^skua \d/);
  });

  test.each(['local/skua.mjs', 'dist/main.js'])(
    '%s under a Node.js that is too old says which one is needed, and how to get it',
    async (file) => {
      // As 20 has it: what it lacks is not looked for either.
      const older = `data:text/javascript,Object.defineProperty(process,'versions',{value:{...process.versions,node:'20.20.2'}});Object.defineProperty(process,'version',{value:'v20.20.2'})`;
      const { code, out, err } = await all.shell(
        `node --import "${older}" node_modules/skua/${file} start --disable-tls`,
        { cwd: walk },
      ).ended;
      expect({ code, out }).toEqual({ code: 4, out: '' });
      expect(err).toMatch(
        new RegExp(
          `^error node_too_old: Skua needs Node\\.js ${NODE_MIN} or later, and this is v20\\.20\\.2 \\(\\S+\\)\\. .*newer`,
        ),
      );
    },
  );
});

test('the command table names every command', () => {
  for (const { name } of COMMANDS) expect(README).toContain(`| \`skua ${name}`);
});

test('the commands that npm runs exist', () => {
  const { scripts, bin } = JSON.parse(readFileSync(`${ROOT}/package.json`, 'utf8')) as {
    scripts: Record<string, string>;
    bin: Record<string, string>;
  };
  for (const [, name] of README.matchAll(/npm (?:run )?(start|test|demo)\b/g)) expect(scripts).toHaveProperty(name!);
  for (const [, name] of README.matchAll(/npm run ([\w:]+)/g)) expect(scripts).toHaveProperty([name!]);
  expect(bin).toEqual({ skua: './local/skua.mjs' });
});
