import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { boolean, integer, list } from '../../../infra/runtime/config/kinds.ts';
import { commandLineName, environmentName, Names } from '../../../infra/runtime/config/option-names.ts';
import { flag, option, optional } from '../../../infra/runtime/config/option.ts';
import { OPTION_GROUPS, OPTIONS } from '../../../infra/runtime/config/options.ts';
import { ABSENT_OPTIONS } from '../../../infra/runtime/config/reference.ts';
import { load, problems } from './support.ts';

describe('names', () => {
  test.each([
    ['MaxAppendSize', '--max-append-size', 'SERVER_MAX_APPEND_SIZE'],
    ['NodeIp', '--node-ip', 'SERVER_NODE_IP'],
    ['Db', '--db', 'SERVER_DB'],
    ['EnableAtomPubOverHttp', '--enable-atom-pub-over-http', 'SERVER_ENABLE_ATOM_PUB_OVER_HTTP'],
    ['AutoScavenge:Enabled', '--auto-scavenge-enabled', 'SERVER_AUTO_SCAVENGE__ENABLED'],
    [
      'Connectors:DataProtection:TokenFile',
      '--connectors-data-protection-token-file',
      'SERVER_CONNECTORS__DATA_PROTECTION__TOKEN_FILE',
    ],
  ])('%s', (name, words, variable) => {
    expect(commandLineName(name)).toBe(words);
    expect(environmentName(name)).toBe(variable);
  });
  test('every option is found by each of its spellings, and is the only one of its name', () => {
    const names = new Names(OPTION_GROUPS);
    for (const [name, { aliases }] of Object.entries(OPTIONS)) {
      expect(names.find(commandLineName(name).slice(2))?.name).toBe(name);
      expect(names.find(environmentName(name).slice('SERVER_'.length))?.name).toBe(name);
      expect(names.findInYaml(name)?.name).toBe(name);
      for (const alias of aliases) expect(names.find(alias)).toMatchObject({ name, alias });
    }
    expect(() => new Names([...OPTION_GROUPS, { title: 'More', options: { nodeport: flag(boolean, '') } }])).toThrow(
      'nodeport',
    );
  });
  test('the groups hold every option once', () => {
    expect(OPTION_GROUPS.flatMap(({ options }) => Object.keys(options)).toSorted()).toEqual(
      Object.keys(OPTIONS).toSorted(),
    );
  });
});

describe('a number on the command line', () => {
  test.each([
    [['--node-port', '7']],
    [['--node-port=7']],
    [['-node-port', '7']],
    [['-node-port=7']],
    [['/node-port', '7']],
    [['/node-port=7']],
    [['node-port=7']],
    [['--NodePort', '7']],
    [['--node_port=7']],
    [['--NODE-PORT', '7']],
    [['--nodeport', '0x7']],
    [['NodePort=7']],
    [['--node-port', '6', '--node-port', '7']],
    [['--node-port', '6', '--NodePort=7']],
  ])('%j', (words) => {
    expect(load(words).values.NodePort).toBe(7);
  });
});

describe('a switch on the command line', () => {
  test.each([
    [['--mem-db'], true],
    [['-mem-db'], true],
    [['--mem-db+'], true],
    [['--mem-db-'], false],
    [['-mem-db-'], false],
    [['--mem-db=true'], true],
    [['--mem-db=False'], false],
    [['--mem-db', 'true'], true],
    [['--mem-db', 'FALSE'], false],
    [['/mem-db'], true],
    [['mem-db=true'], true],
    [['--memdb'], true],
    [['--mem-db', '--mem-db-'], false],
    [['--mem-db', '--insecure'], true],
    [['--mem-db', '-insecure'], true],
  ])('%j', (words, value) => {
    expect(load(words).values.MemDb).toBe(value);
  });
  test('one that is on by default', () => {
    expect(load([]).values.EnableAtomPubOverHttp).toBe(true);
    expect(load(['--enable-atom-pub-over-http-']).values.EnableAtomPubOverHttp).toBe(false);
  });
});

describe('a value is taken as it is written', () => {
  test.each([
    [['--db=/data/x-'], '/data/x-'],
    [['--db=/data/x+'], '/data/x+'],
    [['--db=a=b'], 'a=b'],
    [['--db', '-x'], '-x'],
    [['--db', '/node-port'], '/node-port'],
    [['--db', 'word'], 'word'],
    [['--db=--insecure'], '--insecure'],
    [['--db', 'node-port=1'], 'node-port=1'],
    [['--db=line\nbreak'], 'line\nbreak'],
  ])('%j', (words, value) => {
    expect(load(words).values.Db).toBe(value);
  });
  test('a negative number', () => {
    expect(load(['--max-truncation', '-1']).values.MaxTruncation).toBe(-1);
    expect(load(['--max-truncation=-1']).values.MaxTruncation).toBe(-1);
    expect(load(['--node-priority', '-3']).values.NodePriority).toBe(-3);
  });
});

describe('a command line that is refused', () => {
  test.each<[string[], string[]]>([
    [['word'], ["Unexpected argument 'word'."]],
    [['--mem-db', 'word'], ["Unexpected argument 'word'."]],
    [[''], ["Unexpected argument ''."]],
    [['-'], ["Unexpected argument '-'."]],
    [['--'], ["Unexpected argument '--'."]],
    [['/var/lib'], ["Unexpected argument '/var/lib'."]],
    [['what=ever'], ["Unexpected argument 'what=ever'."]],
    [['--db'], ['--db needs a value: --db DIR.']],
    [['--db', '--insecure'], ['--db needs a value: --db DIR.']],
    [['--db', '-insecure'], ['--db needs a value: --db DIR.']],
    [
      ['--db', '--', 'x'],
      ['--db needs a value: --db DIR.', "Unexpected argument '--'.", "Unexpected argument 'x'."],
    ],
    [['--db='], ["--db must be a path, not ''."]],
    [['--db-'], ['--db- is not valid: only a switch can have - after its name, and then no value.']],
    [['--mem-db+=true'], ['--mem-db+=true is not valid: only a switch can have + after its name, and then no value.']],
    [['--mem-db=1'], ["--mem-db must be true or false, not '1'."]],
    [['--mem-db='], ["--mem-db must be true or false, not ''."]],
    [['--node-port', '65536'], ["--node-port must be a whole number from 0 to 65535, not '65536'."]],
    [
      ['--scavenge-backend-page-size', '12'],
      ["--scavenge-backend-page-size must be a power of two from 1 to 64, not '12'."],
    ],
    [
      ['--node-ip', 'localhost'],
      ["--node-ip must be an IP address such as 127.0.0.1 or ::1 (0.0.0.0 for all), not 'localhost'."],
    ],
    [
      ['--log-level', 'a\u001Bb'],
      [
        String.raw`--log-level must be one of Default, Verbose, Trace, Debug, Information, Warning, Error, Fatal, Critical, None, not 'a\u001bb'.`,
      ],
    ],
  ])('%j', (words, expected) => {
    expect(problems(words)).toEqual(expected);
  });
  test('a very long word is cut', () => {
    expect(problems(['x'.repeat(1_000_000)])[0]!.length).toBeLessThan(300);
    expect(problems([`--${'x'.repeat(1_000_000)}`])[0]!.length).toBeLessThan(300);
  });
});

const ALLOW = 'To start anyway, add --allow-unknown-options.';

describe('unknown options', () => {
  test.each<[string[], string[]]>([
    [['--node-prot', '1'], ['Unknown option --node-prot. Did you mean --node-port?']],
    [['--wrong'], ['Unknown option --wrong.']],
    [['-x'], ['Unknown option -x.']],
    [['--chunk'], ['Unknown option --chunk. Did you mean --chunk-size?']],
    [['--toString'], ['Unknown option --toString.']],
    [['--__proto__'], ['Unknown option --__proto__.']],
    [
      ['--wrong=1', '--scavenge-history-maxage-days', '3', '--mem'],
      [
        'Unknown option --wrong.',
        'Unknown option --scavenge-history-maxage-days. Did you mean --scavenge-history-max-age?',
        'Unknown option --mem. Did you mean --mem-db?',
      ],
    ],
  ])('%j', (words, expected) => {
    expect(problems(words)).toEqual([...expected, ALLOW]);
  });
  test('all sources at once, and only the values beside them', () => {
    expect(
      problems(['--wrong'], {
        env: { SERVER_NODE_PROT: '1', OTHER_NODE_PROT: '1', server_x: '' },
        yaml: 'max-append-size: 1\n',
      }),
    ).toEqual([
      'Unknown option --wrong.',
      'Unknown environment variable SERVER_NODE_PROT. Did you mean SERVER_NODE_PORT?',
      'Unknown option max-append-size in node.yaml:1. Did you mean MaxAppendSize?',
      ALLOW,
    ]);
    expect(problems(['--wrong', '--node-port=x'])).toEqual([
      'Unknown option --wrong.',
      "--node-port must be a whole number from 0 to 65535, not 'x'.",
    ]);
  });
  test('allowed, they are warnings', () => {
    for (const given of [{ env: { SERVER_ALLOW_UNKNOWN_OPTIONS: 'true' } }, { yaml: 'AllowUnknownOptions: true' }]) {
      const { warnings, values } = load(['--wrong', 'value', '--node-port=7'], given);
      expect(warnings).toEqual(['Unknown option --wrong.']);
      expect(values.NodePort).toBe(7);
    }
  });
});

describe('the environment', () => {
  test.each([['SERVER_NODE_PORT'], ['SERVER_NODEPORT'], ['SERVER_Node_Port']])('%s', (name) => {
    expect(load([], { env: { [name]: '7' } }).values.NodePort).toBe(7);
  });
  test('the prefix is upper case', () => {
    expect(load([], { env: { server_node_port: 'x', MY_SERVER_NODE_PORT: 'x' } }).values.NodePort).toBe(2113);
  });
  test.each<[Record<string, string>, string[]]>([
    [{ SERVER_NODE_PORT: '' }, ["SERVER_NODE_PORT must be a whole number from 0 to 65535, not ''."]],
    [{ SERVER_MEM_DB: 'yes' }, ["SERVER_MEM_DB must be true or false, not 'yes'."]],
    [
      { SERVER_NODE_PORT: '1', SERVER_NODEPORT: '2' },
      ['SERVER_NODEPORT and SERVER_NODE_PORT are the same option: set one of them.'],
    ],
    [{ SERVER_: '1' }, ['Unknown environment variable SERVER_.', ALLOW]],
  ])('%j is refused', (env, expected) => {
    expect(problems([], { env })).toEqual(expected);
  });
});

describe('variables that are no options', () => {
  const warningsOf = (env: Record<string, string>, words: string[] = []) => load(words, { env }).warnings;

  test('of a service named server, as an orchestrator sets them', () => {
    const env = {
      SERVER_SERVICE_HOST: '10.96.0.7',
      SERVER_SERVICE_PORT: '2113',
      SERVER_SERVICE_PORT_HTTP: '2113',
      SERVER_SERVICE_PORT_MY_PORT: '7',
      SERVER_PORT: 'tcp://10.96.0.7:2113',
      SERVER_PORT_2113_TCP: 'tcp://10.96.0.7:2113',
      SERVER_PORT_2113_TCP_PROTO: 'tcp',
      SERVER_PORT_2113_TCP_PORT: '2113',
      SERVER_PORT_2113_TCP_ADDR: '10.96.0.7',
      SERVER_PORT_53_UDP_ADDR: '10.96.0.7',
      SERVER_BACKUP_SERVICE_HOST: '10.96.0.8',
      SERVER_BACKUP_PORT_80_TCP_ADDR: '10.96.0.8',
    };
    const [warning, ...more] = warningsOf(env);
    expect(more).toEqual([]);
    for (const name of Object.keys(env)) expect(warning).toContain(name);
    expect(warning).not.toContain('10.96');
    expect(
      warningsOf(Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`SERVER_PORT_${i}_TCP_ADDR`, ''])))[0]!
        .length,
    ).toBeLessThan(1_000);
  });
  test('of a service whose name makes one of ours: a port is no address', () => {
    expect(load([], { env: { SERVER_NODE_PORT: 'tcp://10.96.0.7:2113' } })).toMatchObject({
      values: { NodePort: 2113 },
      warnings: [expect.stringMatching(/^SERVER_NODE_PORT: ignored, because orchestrators/)],
    });
    expect(problems([], { env: { SERVER_NODE_PORT: '10.96.0.7' } })).toHaveLength(1);
  });
  test('and of other programs', () => {
    expect(
      warningsOf({
        SERVER_NAME: 'x',
        SERVER_SOFTWARE: 'y',
        SERVER_HOST: 'z',
        SERVER_ADDR: '',
        SERVER_URL: 'u',
        SERVER_ID: '1',
      }),
    ).toEqual(
      ['SERVER_ADDR', 'SERVER_HOST', 'SERVER_ID', 'SERVER_NAME', 'SERVER_SOFTWARE', 'SERVER_URL'].map(
        (name) => `Unknown environment variable ${name} is ignored.`,
      ),
    );
    expect(warningsOf({ SERVER_LOG_DIR: '/x' })).toEqual([
      'Unknown environment variable SERVER_LOG_DIR is ignored. Did you mean SERVER_LOG?',
    ]);
  });
  test('are errors where they look like typing errors', () => {
    for (const [name, meant] of [
      ['SERVER_NODE_PRT', 'SERVER_NODE_PORT'],
      ['SERVER_NODE_IPS', 'SERVER_NODE_IP'],
      ['SERVER_INSECUR', 'SERVER_INSECURE'],
      ['SERVER_DEFAULT_ADMIN_PASWORD', 'SERVER_DEFAULT_ADMIN_PASSWORD'],
      ['SERVER_CHUNK', 'SERVER_CHUNK_SIZE'],
      ['SERVER_DISABLE_TSL', 'SERVER_DISABLE_TLS'],
    ] as const) {
      expect(problems([], { env: { [name]: 'x' } })).toEqual([
        `Unknown environment variable ${name}. Did you mean ${meant}?`,
        ALLOW,
      ]);
    }
  });
  test('of the reference database: each with its counterpart, or why there is none', () => {
    expect(
      warningsOf({
        EVENTSTORE_DB: '/x',
        KURRENTDB_AUTO_SCAVENGE__ENABLED: 'true',
        EVENTSTORE_EXT_PORT: '7',
        EVENTSTORE_RUN_PROJECTIONS: 'All',
        KURRENTDB_NOBODY_KNOWS: '1',
        EVENTSTORE_NODE_PROT: '1',
        KURRENTDB_: '',
        EVENTSTORE_DEFAULT_ADMIN_PASSWORD: 'hunter2',
        EVENTSTORE_PORT_1113_TCP_ADDR: 'x',
        SERVER_DB: '/y',
      }),
    ).toEqual([
      'EVENTSTORE_DB has no effect here: its counterpart is SERVER_DB, which is set.',
      'EVENTSTORE_DEFAULT_ADMIN_PASSWORD has no effect here: its counterpart is SERVER_DEFAULT_ADMIN_PASSWORD, which is not set.',
      'EVENTSTORE_EXT_PORT has no effect here: its counterpart is SERVER_NODE_PORT, which is not set.',
      'EVENTSTORE_NODE_PROT has no effect here, and has no counterpart. Did you mean SERVER_NODE_PORT?',
      'EVENTSTORE_RUN_PROJECTIONS has no effect here, and has no counterpart: there are no projections.',
      'KURRENTDB_ has no effect here, and has no counterpart.',
      'KURRENTDB_AUTO_SCAVENGE__ENABLED has no effect here: its counterpart is SERVER_AUTO_SCAVENGE__ENABLED, which is not set.',
      'KURRENTDB_NOBODY_KNOWS has no effect here, and has no counterpart.',
      expect.stringMatching(/^EVENTSTORE_PORT_1113_TCP_ADDR: ignored/),
    ]);
  });
  test('options of the reference database under our prefix, and in other places', () => {
    expect(warningsOf({ SERVER_RUN_PROJECTIONS: 'All', SERVER_NODE_TCP_PORT: '1113' })).toEqual([
      'SERVER_NODE_TCP_PORT is ignored: EventStoreDB has this option, but Skua does not: clients speak gRPC and HTTP here, not the TCP protocol.',
      'SERVER_RUN_PROJECTIONS is ignored: EventStoreDB has this option, but Skua does not: there are no projections.',
    ]);
    expect(problems(['--run-projections=All'])).toEqual([
      'Unknown option --run-projections. EventStoreDB has this option, but Skua does not: there are no projections.',
      ALLOW,
    ]);
    expect(problems([], { yaml: 'ReplicationPort: 1112' })).toEqual([
      'Unknown option ReplicationPort in node.yaml:1. EventStoreDB has this option, but Skua does not: cluster members share their log in object storage and reach each other on the client port.',
      ALLOW,
    ]);
  });
  test('what is not here stays so: no option that there is stands in the table', () => {
    const names = new Names(OPTION_GROUPS);
    const absent = ABSENT_OPTIONS.flatMap(({ options }) => options);
    expect(absent.filter((name) => names.find(name) !== null)).toEqual([]);
    expect(new Set(absent).size).toBe(absent.length);
    const page = readFileSync(new URL('../../../local/guide/move-here.md', import.meta.url), 'utf8');
    expect(absent.filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
  });
});

describe('nested options', () => {
  const groups = [
    ...OPTION_GROUPS,
    {
      title: 'Plug-ins',
      options: {
        'Connectors:DataProtection:Limit': option(integer('N', 0, 9), 3, 'Limit'),
        Friends: optional(list('HOST:PORT'), 'Friends'),
      },
    },
  ];
  const valueOf = (name: string, ...[words, given]: Parameters<typeof load>) =>
    load(words, { ...given, groups }).settings.get(name)!.value;

  test.each([
    ['--auto-scavenge-enabled'],
    ['--auto-scavenge:enabled'],
    ['--auto-scavenge__enabled'],
    ['--AutoScavenge:Enabled=true'],
    ['auto-scavenge:enabled=true'],
    ['--auto-scavenge-enabled+'],
  ])('%s', (word) => {
    expect(valueOf('AutoScavenge:Enabled', [word])).toBe(true);
  });
  test.each([['SERVER_AUTO_SCAVENGE__ENABLED'], ['SERVER_AUTO_SCAVENGE_ENABLED'], ['SERVER_AUTOSCAVENGE__ENABLED']])(
    '%s',
    (name) => {
      expect(valueOf('AutoScavenge:Enabled', [], { env: { [name]: 'true' } })).toBe(true);
    },
  );
  test.each([
    ['AutoScavenge:\n  Enabled: true'],
    ['autoscavenge: {enabled: true}'],
    ['AutoScavenge:Enabled: true'],
    ['"AutoScavenge:Enabled": true'],
  ])('%j', (yaml) => {
    expect(valueOf('AutoScavenge:Enabled', [], { yaml })).toBe(true);
  });
  test('deeper ones', () => {
    expect(
      valueOf('Connectors:DataProtection:Limit', [], { yaml: 'Connectors:\n  DataProtection:\n    Limit: 4' }),
    ).toBe(4);
    expect(
      valueOf('Connectors:DataProtection:Limit', ['--connectors-data-protection-limit=5'], {
        yaml: 'Connectors: {DataProtection: {Limit: 4}}',
      }),
    ).toBe(5);
  });
  test('a section may be empty', () => {
    expect(valueOf('AutoScavenge:Enabled', [], { yaml: 'AutoScavenge:\nConnectors: {}' })).toBe(null);
  });
  test.each<[string, string[]]>([
    [
      'AutoScavenge:\n  Enbled: true',
      ['Unknown option AutoScavenge:Enbled in node.yaml:2. Did you mean AutoScavenge:Enabled?', ALLOW],
    ],
    ['AutoScavenge: true', ['Unknown option AutoScavenge in node.yaml:1. Did you mean AutoScavenge:Enabled?', ALLOW]],
    [
      'AutoScavenge:\n  Enabled: true\nAutoScavenge:Enabled: false',
      ['AutoScavenge:Enabled is set twice in node.yaml, in lines 2 and 3.'],
    ],
    ['AutoScavenge: &a\n  Enabled: true\n  Again: *a', ['Unknown option AutoScavenge:Again in node.yaml:3.', ALLOW]],
    [
      'Connectors: &a\n  DataProtection: *a',
      ['Unknown option Connectors:DataProtection:DataProtection in node.yaml:2.', ALLOW],
    ],
  ])('%j is refused', (yaml, expected) => {
    expect(problems([], { yaml, groups })).toEqual(expected);
  });
  test('a text may hold commas, one of a list too', () => {
    const name = 'Connectors:DataProtection:PreviousTokens';
    for (const token of ['a, b', 'a,b,', ','])
      expect(
        load([], { env: { SERVER_CONNECTORS__DATA_PROTECTION__TOKEN: token } }).values[
          'Connectors:DataProtection:Token'
        ],
      ).toBe(token);
    expect(
      valueOf(name, [], { env: { SERVER_CONNECTORS__DATA_PROTECTION__PREVIOUS_TOKENS: String.raw`a\, b, c` } }),
    ).toEqual(['a, b', 'c']);
    expect(
      valueOf(name, [], { yaml: String.raw`Connectors: {DataProtection: {PreviousTokens: ["a, b", 'c\', d]}}` }),
    ).toEqual(['a, b', 'c\\', 'd']);
  });
  test('lists', () => {
    expect(valueOf('Friends', ['--friends', 'a:1,b:2'])).toEqual(['a:1', 'b:2']);
    expect(valueOf('Friends', [], { yaml: 'Friends: a:1,b:2' })).toEqual(['a:1', 'b:2']);
    expect(valueOf('Friends', [], { yaml: 'Friends: [a:1, "b:2"]' })).toEqual(['a:1', 'b:2']);
    expect(valueOf('Friends', [], { yaml: 'Friends: []' })).toBe(null);
    expect(problems([], { yaml: 'Friends: [a:1, [b]]', groups })).toEqual([
      'Friends (node.yaml:1) must be a sequence of single values.',
    ]);
    expect(problems([], { yaml: 'Friends: {a: 1}', groups })).toEqual([
      'Friends (node.yaml:1) must be a list, not a mapping.',
    ]);
    expect(problems([], { env: { SERVER_FRIENDS: 'a;b' }, groups })).toEqual([
      "SERVER_FRIENDS must be a comma-separated list, such as HOST:PORT,HOST:PORT, not 'a;b'.",
    ]);
  });
});
