import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import * as path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { COMMANDS } from '../../local/commands/all-commands.ts';
import { NODE_MIN } from '../../local/node-version.mjs';
import { freePorts } from '../support/free-ports.ts';
import { InProcessS3 } from '../support/s3/in-process-s3.ts';
import { LEFTOVERS, ok, packed } from './packed.ts';
import type { Packed } from './packed.ts';
import { GUIDE, isTestedElsewhere, LANGUAGES, languagesOf, pages, stepsOf } from './guide-blocks.ts';
import type { Step } from './guide-blocks.ts';
import { ROOT } from './spawn.ts';
import type { Spawned } from './spawn.ts';

/**
 * A walk through the README, and then through each page of the guide: every command of every block is run as it stands
 * there, in a folder of the page's own, one after the other. So a page works for readers who know only how a node is
 * started. Commands that name `skua` or `curl` meet the packed package, the others a clone. What is changed are
 * addresses (a free port in place of 2113), and no more.
 */

const ADDRESS = /(https?):\/\/(?:127\.0\.0\.1|localhost):2113\b/g;
const README = readFileSync(`${ROOT}/README.md`, 'utf8');
const README_BYTES_MAX = 9_216;
const PAGES = pages();
const textOf = (name: string) => PAGES.find(({ file }) => file === `${GUIDE}/${name}.md`)!.text;

/** What is not run as it stands there, and why. Each has to be on a page. */
const NOT_HERE: Readonly<Record<string, string>> = {
  'npm ci && npm start': 'It installs. What it starts is started in the folder of each page.',
  'npm ci && npm test': 'It installs, and runs the tests, of which this is one.',
  'npm pack --pack-destination ../my-project': 'Done before all others here: what it packs is what they run.',
  'cd ../my-project': 'Each page has a folder of its own here.',
  'npm install ./skua-0.1.0.tgz': 'Done before all others here, without a network.',
  'npm run build:archive': 'Made, unpacked and run by the test of the archive.',
  'npm run deploy': 'It deploys to an account.',
  'npm run bench -- append-http': 'It measures for minutes.',
  'mkdir -p /opt/skua /etc/skua': 'It writes to the system.',
  'tar -xzf dist/skua-0.1.0-linux-x64.tar.gz -C /opt/skua --strip-components=1':
    'It writes to the system. The test of the archive unpacks it elsewhere.',
  'useradd --system --home-dir /var/lib/skua --shell /usr/sbin/nologin skua': 'It writes to the system.',
  'cp /opt/skua/infra/packaging/skua.service /etc/systemd/system/': 'It writes to the system.',
  'systemctl enable --now skua': 'It needs the unit in the system.',
  'systemctl reload skua': 'It needs the unit in the system.',
};
/** What pages link to that the package has not: pictures, and pages about sources that it has not either. */
const ONLY_IN_SOURCES =
  /\.webp$|^\.github\/|^test\/|^(?:core|handlers|infra)\/.*\.md$|^local\/(?!guide\/)(?:.*\/)?README\.md$|^ARCHITECTURE\.md$/;
/** A node of the page: what is started so takes the place of the one before, over the same files. */
const NODE = /^(?<env>(?:SERVER_\w+='[^']*' )*)(?:npm start|npx skua start)(?! .*(?:--storage|--what-if))(?<words>.*)$/;
/** Commands that stay until they are ended, and what they say when they are there. */
const SERVERS: readonly (readonly [RegExp, RegExp])[] = [
  [/^(?:npm start|npx skua start) .*--storage/, /is listening on (\S+)\n/],
  [/^npx skua functions serve/, /The functions answer at (\S+),/],
  [/^npm run cluster$|^npx skua cluster try/, /^(http:\S+) {2}data /m],
];
/** Members of a cluster, which stay beside each other until the last command that names one of them. */
const MEMBER = /^npx skua start .*--cluster-size .*--node-port (\d+)$/;
/** Commands on the files of a stopped node. */
const STOPPED = /^npx skua (?:verify|user reset-password .*--db|scavenge offline|proof (?:export|verify)).*\.\/data/;

let all: Packed;
let s3: InProcessS3;

beforeAll(async () => {
  all = await packed();
  s3 = await InProcessS3.start();
  await fetch(`${s3.endpoint}/bucket`, { method: 'PUT', headers: { authorization: 'any' } });
});

afterAll(async () => {
  await s3.close();
  await all.remove();
});

const s3Place = () => ({
  AWS_ENDPOINT_URL_S3: s3.endpoint,
  AWS_REGION: 'us-east-1',
  AWS_ACCESS_KEY_ID: 'a',
  AWS_SECRET_ACCESS_KEY: 'b',
});

/** A reader of one page: a folder, a node that is started when the first command asks for it, members of a cluster. */
class Reader {
  readonly folder: string;
  #node: { readonly spawned: Spawned; readonly url: string } | null = null;
  /** By the port that the page gives them. */
  readonly #members = new Map<string, Spawned>();
  /** What started the node, for the next time. */
  #start = 'exec skua start --disable-tls';
  #env: Readonly<Record<string, string>> = {};

  constructor(name: string) {
    this.folder = path.join(all.installed, '..', `reader-${name}`);
    mkdirSync(this.folder);
  }

  async take(step: Step): Promise<void> {
    const { command } = step;
    const port = MEMBER.exec(command)?.[1];
    if (port !== undefined) return this.#startMember(step, port);
    if ([...this.#members.keys()].some((each) => command.includes(`127.0.0.1:${each}`)))
      return await this.#runAmongMembers(step);
    await this.#endMembers();
    const { env, words } = NODE.exec(command)?.groups ?? {};
    if (words !== undefined) return await this.#restart(command, words, env!);
    const server = SERVERS.find(([which]) => which.test(command));
    if (server !== undefined) return await this.#serve(step, server[1]);
    if (!STOPPED.test(command)) return await this.#run(step);
    await this.#stop();
    await this.#run(step);
  }

  async end(): Promise<void> {
    await this.#endMembers();
    await this.#stop();
  }

  async #stop(): Promise<void> {
    if (this.#node !== null) expect((await this.#node.spawned.end()).code).toBe(0);
    this.#node = null;
  }

  async #url(): Promise<string> {
    if (this.#node !== null) return this.#node.url;
    const env = { ...this.#env, SERVER_NODE_PORT: '0' };
    const spawned = all.shell(this.#start, { cwd: this.folder, isServer: true, env });
    this.#node = { spawned, url: (await spawned.seen(/is listening on (\S+)\n/))[1]! };
    return this.#node.url;
  }

  async #restart(command: string, words: string, env: string): Promise<void> {
    await this.#stop();
    this.#env = Object.fromEntries(
      [...env.matchAll(/(SERVER_\w+)='([^']*)'/g)].map(([, name, value]) => [name!, value!]),
    );
    this.#start = command.includes('npm start')
      ? `exec skua start --disable-tls${words.replace(' --', '')}`
      : `exec skua start${words}`;
    await this.#url();
  }

  /** Starts a member on any free port; the next command that asks one waits for all. */
  #startMember({ command, exported }: Step, port: string): void {
    this.#members.set(
      port,
      all.shell(command.replace(/^npx skua /, 'exec skua ').replace(port, '0'), {
        cwd: this.folder,
        isServer: true,
        env: { ...exported, ...s3Place(), SERVER_STREAM_EXISTENCE_FILTER_SIZE: '10000' },
      }),
    );
  }

  async #endMembers(): Promise<void> {
    for (const member of this.#members.values()) expect((await member.end()).code).toBe(0);
    this.#members.clear();
  }

  /** A command to members: once the cluster is whole. */
  async #runAmongMembers(step: Step): Promise<void> {
    let { command } = step;
    for (const [port, member] of this.#members)
      command = command.replaceAll(`http://127.0.0.1:${port}`, (await member.seen(/is listening on (\S+)\n/))[1]!);
    const status = command.replace('npx ', '');
    if (command.includes(' cluster status'))
      await ok(
        all.shell(`for i in $(seq 1200); do ${status} >/dev/null && exit 0; sleep 0.5; done; ${status}`, {
          cwd: this.folder,
        }).ended,
      );
    await this.#run({ ...step, command });
  }

  async #run({ command, expected, exported, section }: Step): Promise<void> {
    const isCurl = command.startsWith('curl ');
    const isAboutFiles = STOPPED.test(command) || command.includes('--storage ');
    const url = isAboutFiles ? null : await this.#url();
    // The package lies in another folder, where npx would find it in half a second, each time.
    const line = command
      .replace(ADDRESS, url ?? '$&')
      .replace(/\bnpx skua /, 'skua ')
      .replace(/^curl/, 'exec curl -sS');
    const spawned = all.shell(line, {
      cwd: command.startsWith('npm ') ? all.clone : this.folder,
      env: { ...(url !== null && { SKUA_NODE: url }), ...exported, ...(command.includes('s3://') && s3Place()) },
    });
    if (isCurl && command.includes(' -N ')) {
      // A subscription never ends by itself.
      // Of data a part is enough, all else are whole lines.
      const finds = expected.map((text) => (text.startsWith('"') ? new RegExp(text) : new RegExp(`^${text}$`, 'm')));
      await Promise.all(finds.map((find) => spawned.seen(find)));
      spawned.child.kill('SIGTERM');
      await spawned.ended;
      return;
    }
    const { code, out, err } = await spawned.ended;
    expect({ code, err: code === 0 ? '' : err }, `${section}: ${command}`).toEqual({ code: 0, err: '' });
    if (isCurl) {
      expect(err).toBe('');
      // Else the prompt, or the next answer, goes on in the same line: `-w '\\n'`.
      expect(out.endsWith('\n'), command).toBe(true);
    }
    for (const text of expected)
      expect(url === null ? out : out.replaceAll(url, 'http://127.0.0.1:2113')).toContain(text);
  }

  /** Runs what stays until it is ended, ends it as Ctrl+C does, and looks that it ends well. */
  async #serve({ command }: Step, seen: RegExp): Promise<void> {
    const isCluster = command.includes('cluster');
    const port = isCluster
      ? `${command.startsWith('npm ') ? ' --' : ''} --port ${(await freePorts(1))[0]}`
      : command.includes('functions')
        ? ' --port 0'
        : '';
    const spawned = all.shell(command.replace(/\bnpx skua /, 'exec skua ') + port, {
      cwd: command.startsWith('npm ') ? all.clone : this.folder,
      isServer: true,
      env: { SERVER_NODE_PORT: '0', ...s3Place() },
    });
    const [, url] = await spawned.seen(seen);
    const reply = await fetch(`${url}/streams/%24all`, {
      headers: { authorization: `Basic ${btoa('admin:changeit')}`, accept: 'application/json' },
    });
    expect(reply.status).toBe(200);
    await reply.body?.cancel();
    const { code, out, err } = await spawned.end();
    // npm itself is ended by the signal, whatever its script does.
    if (isCluster) expect(out).toContain('All members have stopped.');
    else if (command.includes('npm ')) expect(err).toContain('"stopped"');
    else expect(code).toBe(0);
  }
}

describe('README and guide', () => {
  test(`the README has at most ${README_BYTES_MAX} bytes`, () => {
    expect(Buffer.byteLength(README)).toBeLessThanOrEqual(README_BYTES_MAX);
  });

  test('the index of the guide leads to every page of it', () => {
    const index = textOf('README');
    const names = PAGES.flatMap(({ file }) => (file.startsWith(`${GUIDE}/`) ? [path.basename(file)] : []));
    expect(names.length).toBeGreaterThan(15);
    for (const name of names) if (name !== 'README.md') expect(index).toContain(`](${name})`);
    expect(README).toMatch(/\]\(local\/guide\/(?:README\.md|[a-z-]+\.md)?\)/);
  });

  test('every block says what it is, and what is not run is on a page', () => {
    for (const page of PAGES) {
      expect([page.file, page.text.match(/^\s*```$/gm)?.length ?? 0]).toEqual([page.file, languagesOf(page).length]);
      for (const language of languagesOf(page)) expect(LANGUAGES, page.file).toContain(language);
    }
    const commands = PAGES.flatMap(stepsOf).map((step) => step.command);
    expect(commands.length).toBeGreaterThan(100);
    for (const command of Object.keys(NOT_HERE)) expect(commands).toContain(command);
  });
});

describe
  .skipIf(spawnSync('curl', ['--version']).status !== 0)
  .each(PAGES.filter((page) => !isTestedElsewhere(page) && stepsOf(page).length > 0))('$file', (page) => {
  let reader: Reader;
  beforeAll(() => {
    reader = new Reader(path.basename(page.file, '.md').toLowerCase());
  });
  afterAll(() => reader.end());

  test.for(stepsOf(page).map((step, i) => [i + 1, step.section, step.command.split('\n')[0]!, step] as const))(
    '%i %s: %s',
    async ([, , , step], { skip }) => {
      const reason = NOT_HERE[step.command];
      if (reason !== undefined) skip(reason);
      await reader.take(step);
      // What writes a file for a later step prints nothing.
      if (step.language === 'sh' && !/ (?:>|--out) \S+$/.test(step.command))
        expect(step.expected.length).toBeGreaterThan(0);
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
        'local/guide/README.md',
        'local/skua.mjs',
        'dist/main.js',
        'dist/worker.js',
        'dist/sandbox-worker.mjs',
        'dist/quickjs.wasm',
        'dist/THIRD-PARTY.txt',
        'dist/functions.js',
        'dist/function-bootstrap.mjs',
        'infra/packaging/skua.service',
      ]),
    );
    for (const left of LEFTOVERS) expect(files).not.toContain(left);
    expect(files.filter((file) => /(?:^|\/)(?:test|node_modules)\/|(?<!\.d)\.ts$|\.(?:tmp|tgz)$/.test(file))).toEqual(
      [],
    );
    // Surfaces have declarations, and no bundle a source map.
    expect(files).toEqual(
      expect.arrayContaining(['CHANGELOG.md', 'dist/embedded.js', 'dist/types/local/embedded/index.d.ts']),
    );
    expect(files.filter((file) => file.endsWith('.map'))).toEqual([]);
  });

  test('has all that README and guide link to', () => {
    const files = all.told.files.map((file) => file.path);
    const links = PAGES.flatMap(({ file, text }) =>
      [...text.matchAll(/\]\(([^):#\s]+)(?:#[^)]*)?\)/g)].map(([, link]) => path.join(path.dirname(file), link!)),
    );
    const inPackage = links.filter((link) => !ONLY_IN_SOURCES.test(link));
    expect(inPackage.length).toBeGreaterThan(30);
    expect(inPackage.filter((link) => !files.includes(link))).toEqual([]);
    // These are for readers who have the sources.
    expect(links.filter((link) => !existsSync(path.join(ROOT, link)))).toEqual([]);
    const pictures = links.filter((link) => link.endsWith('.webp'));
    expect(new Set(pictures).size).toBe(3);
    for (const picture of pictures)
      expect([picture, existsSync(path.join(ROOT, picture)), files.includes(picture)]).toEqual([picture, true, false]);
  });

  test('needs no other packages, and says the truth about Node.js', () => {
    const { installed } = all;
    const about = JSON.parse(readFileSync(path.join(installed, 'node_modules/skua/package.json'), 'utf8')) as {
      engines: { node: string };
      dependencies?: object;
      devDependencies: { node: string };
    };
    expect(about.dependencies).toBeUndefined();
    expect(about.engines.node).toBe(`>=${NODE_MIN}`);
    expect(readdirSync(path.join(installed, 'node_modules')).filter((name) => !name.startsWith('.'))).toEqual(['skua']);
    expect(textOf('install')).toContain(`Node.js ${NODE_MIN.replace(/\.0$/, '')} or later`);
  });

  test('has the parts that only some nodes load: traces, log files, the audit', async () => {
    const spawned = all.shell('exec skua start --disable-tls --mem-db --log logs --audit-log audit.json', {
      cwd: all.installed,
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
    expect(readdirSync(all.installed)).toEqual(
      expect.arrayContaining(['logs', expect.stringMatching(/^audit\d+\.json$/) as string]),
    );
  });

  test('npx finds its command', async () => {
    expect((await ok(all.shell('npx skua help', { cwd: all.installed }).ended)).out).toMatch(/^skua \d/);
  });

  test.each(['local/skua.mjs', 'dist/main.js'])(
    '%s under a Node.js that is too old says which one is needed, and how to get it',
    async (file) => {
      // As 20 has it: what it lacks is not looked for either.
      const older = `data:text/javascript,Object.defineProperty(process,'versions',{value:{...process.versions,node:'20.20.2'}});Object.defineProperty(process,'version',{value:'v20.20.2'})`;
      const { code, out, err } = await all.shell(
        `node --import "${older}" node_modules/skua/${file} start --disable-tls`,
        { cwd: all.installed },
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

test('the table of commands has every command, and no option that it lacks', () => {
  const rows = textOf('commands').split('\n');
  for (const { name, options } of COMMANDS) {
    const row = rows.find(
      (line) => line.startsWith(`| \`skua ${name}`) && /[` ]/.test(line[`| \`skua ${name}`.length]!),
    );
    expect(row, name).toBeDefined();
    for (const [, option] of row!.matchAll(/`--([a-z0-9-]+)/g)) expect(Object.keys(options), name).toContain(option);
  }
});

test('the commands that npm runs exist', () => {
  const { scripts, bin } = JSON.parse(readFileSync(`${ROOT}/package.json`, 'utf8')) as {
    scripts: Record<string, string>;
    bin: Record<string, string>;
  };
  for (const { text } of PAGES)
    for (const [, name] of text.matchAll(/npm (?:run )?(start|test|(?<=run )[a-z][\w:]*)\b/g))
      expect(scripts).toHaveProperty([name!]);
  expect(bin).toEqual({ skua: './local/skua.mjs' });
});
