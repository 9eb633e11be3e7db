import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ConfigError } from '../../../infra/runtime/config/option.ts';
import { MASK } from '../../../local/config/config.ts';
import { loadConfig } from '../../../local/config/load-config.ts';
import { logLevelOf, OPTIONS } from '../../../infra/runtime/config/options.ts';
import { readConfigFile } from '../../../local/config/yaml.ts';
import { load, problems, problemsOf } from './support.ts';

describe('precedence', () => {
  const yaml = 'NodePort: 1';
  const env = { SERVER_NODE_PORT: '2' };
  const words = ['--node-port', '3'];
  test.each([
    ['defaults', load([]), 2113, '<DEFAULT>'],
    ['the file', load([], { yaml }), 1, 'Yaml'],
    ['the environment', load([], { yaml, env }), 2, 'Environment Variables'],
    ['the command line', load(words, { yaml, env }), 3, 'Command Line'],
    ['the command line over the file', load(words, { yaml }), 3, 'Command Line'],
  ])('%s', (_, config, port, source) => {
    expect(config.values.NodePort).toBe(port);
    expect(config.settings.get('NodePort')!.source).toBe(source);
    expect(config.given('NodePort')).toBe(source !== '<DEFAULT>');
  });
  test('a value that does not count is not looked at', () => {
    expect(load(words, { yaml: 'NodePort: x' }).values.NodePort).toBe(3);
    expect(load([], { env, yaml: 'NodePort: x' }).values.NodePort).toBe(2);
  });
  test('messages name an option as it was given', () => {
    const config = load(['--db', 'x'], { env: { SERVER_NODE_IP: '::1' }, yaml: 'nodeport: 1' });
    expect((['Db', 'NodeIp', 'NodePort', 'Index'] as const).map((name) => config.spelling(name))).toEqual([
      '--db',
      'SERVER_NODE_IP',
      'nodeport (node.yaml:1)',
      '--index',
    ]);
  });
});

describe('deprecated', () => {
  test('a former name works, with one warning for all', () => {
    const { values, warnings } = load(['--http-ip', '127.0.0.1', '--always-keep-scavenged'], {
      env: { SERVER_EXT_PORT: '7' },
      yaml: 'HttpPortAdvertiseAs: 8',
    });
    expect(values).toMatchObject({ NodeIp: '127.0.0.1', NodePort: 7, NodePortAdvertiseAs: 8 });
    expect(warnings).toEqual([expect.stringMatching(/^DEPRECATED: /)]);
    for (const part of [
      '--http-ip is now called --node-ip.',
      'SERVER_EXT_PORT is now called SERVER_NODE_PORT.',
      'HttpPortAdvertiseAs (node.yaml:1) is now called NodePortAdvertiseAs.',
      '--always-keep-scavenged: it has no effect',
    ])
      expect(warnings[0]).toContain(part);
  });
  test('given with its default value: no warning', () => {
    expect(load(['--always-keep-scavenged=false', '--worker-threads=0']).warnings).toEqual([]);
    expect(load(['--optimize-index-merge']).warnings).toHaveLength(1);
  });
  test.each([[['--http-port=1', '--node-port=2']], [['--node-port=2', '--http-port=1']]])(
    'the present name wins over the former one: %j',
    (words) => {
      expect(load(words)).toMatchObject({ values: { NodePort: 2 }, warnings: [] });
    },
  );
  test('a former name wins over a lighter source', () => {
    expect(load(['--http-port=1'], { yaml: 'NodePort: 2' }).values.NodePort).toBe(1);
  });
});

describe('environment only', () => {
  test('passwords are taken from there', () => {
    expect(load([]).values.DefaultAdminPassword).toBe('changeit');
    expect(
      load([], { env: { SERVER_DEFAULT_ADMIN_PASSWORD: ' y', SERVER_DEFAULT_OPS_PASSWORD: 'x' } }).values,
    ).toMatchObject({ DefaultAdminPassword: ' y', DefaultOpsPassword: 'x' });
  });
  test.each(['', ' ', '\t\n'])('%j is no password, wherever it is given', (blank) => {
    for (const [name, variable, option] of [
      ['DefaultAdminPassword', 'SERVER_DEFAULT_ADMIN_PASSWORD', '--default-admin-password'],
      ['DefaultOpsPassword', 'SERVER_DEFAULT_OPS_PASSWORD', '--default-ops-password'],
    ] as const) {
      const refusal = (spelling: string) =>
        expect.stringMatching(
          new RegExp(
            `^${spelling.replaceAll(/[()]/g, '\\$&')} must be a password, and it is empty .*leave out the variable\\.$`,
          ),
        );
      for (const words of [[], ['--insecure'], ['--what-if']])
        expect(problems(words, { env: { [variable]: blank } })).toEqual([refusal(variable)]);
      expect(problems([`${option}=${blank}`])).toEqual([
        `${option} can only be set in the environment, as ${variable}.`,
        refusal(option),
      ]);
      expect(problems([], { yaml: `${name}: "${blank.replaceAll('\n', '\\n').replaceAll('\t', '\\t')}"` })).toEqual([
        `${name} (node.yaml:1) can only be set in the environment, as ${variable}.`,
        refusal(`${name} (node.yaml:1)`),
      ]);
      expect(problems([], { yaml: `${name}:` })).toEqual([expect.stringContaining(name)]);
    }
  });
  test('elsewhere they are refused, even where the environment has them too, and not shown', () => {
    const env = { SERVER_DEFAULT_OPS_PASSWORD: 'x' };
    const expected = ['can only be set in the environment, as SERVER_DEFAULT_OPS_PASSWORD.'];
    expect(problems(['--default-ops-password', 'hunter2'])).toEqual([`--default-ops-password ${expected}`]);
    expect(problems([], { env, yaml: 'DefaultOpsPassword: hunter2' })).toEqual([
      `DefaultOpsPassword (node.yaml:1) ${expected}`,
    ]);
  });
});

describe('combinations that are refused', () => {
  test.each<[string[], string[]]>([
    [['--db=~/data'], ['--db starts with ~, which only a shell expands: give the full path.']],
    [
      ['--index=~/index', '--log=~'],
      [
        '--index starts with ~, which only a shell expands: give the full path.',
        '--log starts with ~, which only a shell expands: give the full path.',
      ],
    ],
    [['--db=/x/y', '--index=/x/y'], ['--index and --db are the same directory: give the index its own.']],
    [['--db=/x/y', '--index=/x/z/../y/'], ['--index and --db are the same directory: give the index its own.']],
    [['--index=data'], ['--index and --db are the same directory: give the index its own.']],
    [['--cluster-size=0'], ['--cluster-size must be at least 1, not 0.']],
    [['--cluster-size=-1'], ['--cluster-size must be at least 1, not -1.']],
    [
      ['--max-append-size=0'],
      ["--max-append-size must be a number of bytes from 1 to 16767216, such as 67108864 or 64MiB, not '0'."],
    ],
    [
      ['--max-append-size=16767217'],
      ["--max-append-size must be a number of bytes from 1 to 16767216, such as 67108864 or 64MiB, not '16767217'."],
    ],
    [['--mem-db', '--db=x'], ['--mem-db keeps everything in memory: leave out --db and --index.']],
    [['--mem-db', '--index=x'], ['--mem-db keeps everything in memory: leave out --db and --index.']],
    [
      ['--enable-trusted-auth'],
      [
        '--enable-trusted-auth trusts a proxy to name the user, and no proxy is configured: set --trusted-proxies to the addresses to trust.',
      ],
    ],
    [
      ['--enable-trusted-auth', '--insecure'],
      [
        '--enable-trusted-auth trusts a proxy to name the user, and no proxy is configured: set --trusted-proxies to the addresses to trust.',
      ],
    ],
    [
      ['--trusted-proxies=0.0.0.0/0'],
      [
        "--trusted-proxies must be comma-separated IP addresses and ranges, such as 10.0.0.0/8,2001:db8::7 (a range of all addresses is refused), not '0.0.0.0/0'.",
      ],
    ],
    [
      ['--db=~', '--cluster-size=2'],
      [
        '--db starts with ~, which only a shell expands: give the full path.',
        expect.stringContaining('--cluster-size 2: the members of a cluster share a log on object storage.'),
      ],
    ],
  ])('%j', (words, expected) => {
    expect(problems(words)).toEqual(expected);
  });
  test('a data directory that the file names does not stand in the way of --mem-db', () => {
    expect(load(['--mem-db'], { yaml: 'Db: /var/data' }).values.MemDb).toBe(true);
    expect(problems(['--db=x'], { yaml: 'MemDb: true' })).toEqual([
      'MemDb (node.yaml:1) keeps everything in memory: leave out --db and --index.',
    ]);
  });
  test('the largest and smallest that are allowed', () => {
    expect(load(['--max-append-size=16767216']).values.MaxAppendSize).toBe(16_767_216);
    expect(load(['--commit-timeout-ms=1', '--prepare-timeout-ms=1']).values.CommitTimeoutMs).toBe(1);
    expect(load([]).values.CommitTimeoutMs).toBe(null);
    expect(load(['--max-append-size=1', '--cluster-size=1', '--db=x', '--index=x/index']).values.MaxAppendSize).toBe(1);
  });
});

describe('warnings of what is ignored', () => {
  const words = ['--certificate-file=x', '--certificate-password=x'];
  test.each([
    [
      ['--insecure', '--dev'],
      [
        '--certificate-file has no effect because of --insecure.',
        '--certificate-password has no effect because of --insecure.',
        '--dev has no effect because of --insecure.',
      ],
    ],
    [
      // That both are without TLS is no contradiction: npm start says one of them by itself.
      ['--insecure', '--disable-tls'],
      [
        '--certificate-file has no effect because of --insecure.',
        '--certificate-password has no effect because of --insecure.',
      ],
    ],
    [
      ['--disable-tls'],
      [
        '--certificate-file has no effect because of --disable-tls.',
        '--certificate-password has no effect because of --disable-tls.',
      ],
    ],
    [
      ['--dev'],
      ['--certificate-file has no effect because of --dev.', '--certificate-password has no effect because of --dev.'],
    ],
    [[], []],
  ])('%j', (more, warnings) => {
    expect(load([...words, ...more]).warnings).toEqual(warnings);
  });
  test('default passwords without users', () => {
    expect(load(['--insecure'], { env: { SERVER_DEFAULT_ADMIN_PASSWORD: 'x' } }).warnings).toEqual([
      'SERVER_DEFAULT_ADMIN_PASSWORD has no effect because of --insecure.',
    ]);
  });
});

describe('secrets', () => {
  const env = { SERVER_DEFAULT_ADMIN_PASSWORD: 'hunter1', SERVER_CERTIFICATE_PASSWORD: 'hunter2' };
  test('are masked wherever values are shown', () => {
    const { views, values } = load([], { env });
    expect(values.CertificatePassword).toBe('hunter2');
    expect(JSON.stringify(views)).not.toContain('hunter');
    for (const name of Object.entries(OPTIONS).flatMap(([key, { isSensitive }]) => (isSensitive ? [key] : [])))
      expect(views.find((view) => view.name === name)).toMatchObject({ value: MASK });
  });
  test('every option that holds one is marked as such', () => {
    for (const [name, { isSensitive }] of Object.entries(OPTIONS))
      expect([name, isSensitive]).toEqual([name, /Password$|Secret|Tokens?$|LicenseKey|^Proof:Anchor$/.test(name)]);
  });
});

test('views of options', () => {
  const { views } = load(['--chunk-size=64MiB', '--log-level=warn'], { yaml: 'MemDb: TRUE' });
  const view = (name: string) => views.find((each) => each.name === name);
  expect(views.map(({ name }) => name).toSorted()).toEqual(Object.keys(OPTIONS).toSorted());
  expect(view('ChunkSize')).toEqual({
    name: 'ChunkSize',
    description: OPTIONS.ChunkSize.description,
    group: 'Database Options',
    value: '67108864',
    configurationSource: 'Command Line',
    deprecationMessage: null,
    possibleValues: null,
    schema: { type: 'integer' },
    defaultValue: OPTIONS.ChunkSize.fallbackText,
    isSecret: false,
    isReloadable: false,
    commandLine: '--chunk-size',
    environment: 'SERVER_CHUNK_SIZE',
  });
  expect(view('LogLevel')).toMatchObject({ isReloadable: true });
  expect(view('DefaultAdminPassword')).toMatchObject({
    isSecret: true,
    value: '********',
    commandLine: null,
    environment: 'SERVER_DEFAULT_ADMIN_PASSWORD',
  });
  expect(view('MemDb')).toMatchObject({ value: 'true', configurationSource: 'Yaml', schema: { type: 'boolean' } });
  expect(view('LogLevel')).toMatchObject({
    value: 'Warning',
    possibleValues: expect.arrayContaining(['Verbose', 'None']),
    schema: { type: 'string' },
  });
  expect(view('Index')).toMatchObject({ value: '', configurationSource: '<DEFAULT>' });
  expect(view('AlwaysKeepScavenged')!.deprecationMessage).toContain('no effect');
});

test('levels of both generations, and the short words', () => {
  const level = (word: string) => logLevelOf(load([`--log-level=${word}`]).values.LogLevel);
  expect(
    [
      'Default',
      'info',
      'Information',
      'debug',
      'Verbose',
      'trace',
      'warn',
      'WARNING',
      'error',
      'Fatal',
      'critical',
      'off',
      'None',
    ].map(level),
  ).toEqual([
    'info',
    'info',
    'info',
    'debug',
    'debug',
    'debug',
    'warn',
    'warn',
    'error',
    'error',
    'error',
    'off',
    'off',
  ]);
});

describe('reading again', () => {
  const files: Record<string, string> = {};
  const first = (yaml: string) => {
    files['node.yaml'] = yaml;
    return loadConfig({
      argv: ['--config=node.yaml', '--node-port=7'],
      env: { SERVER_CERTIFICATE_PASSWORD: 'hunter2' },
      readFile: (path) => files[path] ?? null,
    });
  };
  test('takes the file as it is now, and leaves the configuration before alone', () => {
    const before = first('LogLevel: Debug\nNodePort: 1');
    files['node.yaml'] = 'LogLevel: Error\nNodePort: 2\nDb: /elsewhere\nCertificatePrivateKeyPassword: hunter3';
    const after = before.reread();
    expect(before.values).toMatchObject({ LogLevel: 'Debug', Db: './data' });
    expect(after.values).toMatchObject({ LogLevel: 'Error', NodePort: 7, CertificatePassword: 'hunter2' });
    expect(before.diff(after)).toEqual([
      { name: 'Db', from: './data', to: '/elsewhere', isReloadable: false },
      { name: 'CertificatePrivateKeyPassword', from: MASK, to: MASK, isReloadable: true },
      { name: 'LogLevel', from: 'Debug', to: 'Error', isReloadable: true },
    ]);
    expect(after.diff(after.reread())).toEqual([]);
  });
  test('the default file may come and go', () => {
    const found: Record<string, string> = {};
    const before = loadConfig({ argv: [], env: {}, readFile: (path) => found[path] ?? null });
    found['/etc/skua/skua.conf'] = 'LogLevel: Error';
    const after = before.reread();
    expect([after.file, after.values.LogLevel]).toEqual(['/etc/skua/skua.conf', 'Error']);
    delete found['/etc/skua/skua.conf'];
    expect(after.reread().values.LogLevel).toBe('Default');
  });
  test.each<[string | null, RegExp]>([
    ['NodePort: [', /^node\.yaml is not valid YAML/],
    ['LogLevel: loud', /^LogLevel \(node\.yaml:1\) must be one of/],
    ['LogLvl: Debug', /^Unknown option LogLvl in node\.yaml:1/],
    ['Db: ~/data', /^Db \(node\.yaml:1\) starts with ~/],
    [null, /^The configuration file node\.yaml does not exist/],
  ])('refuses %j and names the file', (yaml, expected) => {
    const before = first('LogLevel: Debug');
    if (yaml === null) delete files['node.yaml'];
    else files['node.yaml'] = yaml;
    expect(problemsOf(() => before.reread())[0]).toMatch(expected);
    expect(() => before.reread()).toThrow(expect.objectContaining({ file: 'node.yaml' }));
    expect(before.values.LogLevel).toBe('Debug');
  });
  test('only certificates and the log level change without a restart', () => {
    for (const [name, { isReloadable }] of Object.entries(OPTIONS))
      expect([name, isReloadable]).toEqual([name, name === 'LogLevel' || /^(Certificate|TrustedRoot)/.test(name)]);
  });
});

describe('files of the disk', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'skua-config-'));
  });
  afterEach(() => {
    rmSync(folder, { recursive: true, force: true });
  });
  const read = (path: string) => loadConfig({ argv: ['--config', path], env: {}, readFile: readConfigFile });

  test('are read', () => {
    writeFileSync(join(folder, 'node.yaml'), 'NodePort: 7\n');
    expect(read(join(folder, 'node.yaml')).values.NodePort).toBe(7);
  });
  test('that are absent, folders, devices or too large are refused', () => {
    mkdirSync(join(folder, 'sub'));
    writeFileSync(join(folder, 'large'), Buffer.alloc(65_537, 35));
    expect(problemsOf(() => read(join(folder, 'absent')))).toEqual([
      `The configuration file ${join(folder, 'absent')} does not exist. Create it, or leave out --config.`,
    ]);
    expect(problemsOf(() => read(join(folder, 'sub')))).toEqual([
      `The configuration file ${join(folder, 'sub')} can't be read: it is not a file.`,
    ]);
    expect(problemsOf(() => read('/dev/zero'))).toEqual([
      "The configuration file /dev/zero can't be read: it is not a file.",
    ]);
    expect(problemsOf(() => read(join(folder, 'large')))).toEqual([expect.stringContaining('65537 bytes')]);
    expect(() => read('a\0b')).toThrow(ConfigError);
  });
});
