import { describe, expect, test } from 'vitest';
import { load, problems } from './support.ts';

const ALLOW = 'To start anyway, add --allow-unknown-options.';
const NO_VALUE = 'has no value: give it one, or leave it out for its default.';

describe('a file that is understood', () => {
  test.each<[string, object]>([
    ['', {}],
    ['\n', {}],
    ['# only a comment\n', {}],
    ['{}', {}],
    ['NodePort: 7', { NodePort: 7 }],
    ['---\nNodePort: 7\n', { NodePort: 7 }],
    ['NODEPORT: 7', { NodePort: 7 }],
    ['nodeport: 0x7', { NodePort: 7 }],
    ['"NodePort": "7"', { NodePort: 7 }],
    ["NodePort: '7'", { NodePort: 7 }],
    ['NodePort: 007', { NodePort: 7 }],
    ['{NodePort: 7, MemDb: true}', { NodePort: 7, MemDb: true }],
    ['MemDb: TRUE', { MemDb: true }],
    ['MemDb: "false"', { MemDb: false }],
    ['Db: /var/data # here', { Db: '/var/data' }],
    ['Db: "a: b # c"', { Db: 'a: b # c' }],
    ['Db: 2024-01-01', { Db: '2024-01-01' }],
    ['Db: null.txt', { Db: 'null.txt' }],
    ['Db: "null"', { Db: 'null' }],
    ['Db: &place /var/data\nLog: *place', { Db: '/var/data', Log: '/var/data' }],
    ['NodePort: 7\r\nMemDb: true\r\n', { NodePort: 7, MemDb: true }],
    ['\uFEFFNodePort: 7', { NodePort: 7 }],
    ['NodePort: 7\n---\nNodePort: [', { NodePort: 7 }],
    ['NodePort: 7\n...\n: {', { NodePort: 7 }],
    ['CertificateReservedNodeCommonName: ""', { CertificateReservedNodeCommonName: '' }],
    ['LogLevel: warning\nChunkSize: 64 MiB', { LogLevel: 'Warning', ChunkSize: 67_108_864 }],
    ['HttpPort: 7', { NodePort: 7 }],
  ])('%j', (yaml, values) => {
    expect(load([], { yaml }).values).toMatchObject(values);
  });
});

describe('a file that is refused, with file, line and cause', () => {
  test.each<[string, string[]]>([
    ['---', ['node.yaml:1 must be a mapping of options, such as "NodePort: 2113", not nothing.']],
    ['just text', ['node.yaml:1 must be a mapping of options, such as "NodePort: 2113", not a single value.']],
    ['# one\n- NodePort: 7', ['node.yaml:2 must be a mapping of options, such as "NodePort: 2113", not a sequence.']],
    ['MemDb: true\n\nmemdb: true', ['memdb is set twice in node.yaml, in lines 1 and 3.']],
    [
      'NodePort: 7\nMax-Append-Size: 1',
      ['Unknown option Max-Append-Size in node.yaml:2. Did you mean MaxAppendSize?', ALLOW],
    ],
    ['<<: {NodePort: 7}', ['Unknown option << in node.yaml:1.', ALLOW]],
    [
      '__proto__: 7\nconstructor: {a: b}',
      ['Unknown option __proto__ in node.yaml:1.', 'Unknown option constructor in node.yaml:2.', ALLOW],
    ],
    ['NodePort:', [`NodePort (node.yaml:1) ${NO_VALUE}`]],
    [
      'NodePort: ~\nMemDb: null\nDb: NULL',
      ['NodePort', 'MemDb', 'Db'].map((name, i) => `${name} (node.yaml:${i + 1}) ${NO_VALUE}`),
    ],
    ['NodePort: ""', ["NodePort (node.yaml:1) must be a whole number from 0 to 65535, not ''."]],
    ['MemDb: yes', ["MemDb (node.yaml:1) must be true or false, not 'yes'."]],
    ['NodePort: 1_000', ["NodePort (node.yaml:1) must be a whole number from 0 to 65535, not '1_000'."]],
    ['Db: [a, b]', ['Db (node.yaml:1) must be a single value, not a sequence.']],
    ['Db: {a: b}', ['Db (node.yaml:1) must be a single value, not a mapping.']],
    [
      'Db: *place',
      [
        'node.yaml:1 refers to something that is not defined: a value that begins with * needs quotes.',
        'Db (node.yaml:1) must be a single value, not nothing.',
      ],
    ],
    ['? [a, b]\n: c', ['node.yaml:1 has a sequence where the name of an option should be.']],
    ['Config: other.yaml', ['Config (node.yaml:1) has no effect inside the file: remove it.']],
    [
      'DefaultAdminPassword: hunter2',
      ['DefaultAdminPassword (node.yaml:1) can only be set in the environment, as SERVER_DEFAULT_ADMIN_PASSWORD.'],
    ],
    [
      `NodePort: 1\n${'x'.repeat(65_536)}: 1`,
      ['node.yaml is larger than 65536 characters: that is too large for a configuration file.'],
    ],
  ])('%.40j', (yaml, expected) => {
    // The file is named in the environment: what is given on the command line is of no matter here.
    expect(problems([], { env: { SERVER_CONFIG: 'node.yaml' }, files: { 'node.yaml': yaml } })).toEqual(expected);
  });
  test.each<[string, RegExp]>([
    ['NodePort: 7\nDb: [a,\nx', /^node\.yaml is not valid YAML: .+ \(line \d, column \d+\)\.$/],
    ['\tNodePort: 7', /^node\.yaml is not valid YAML: .*[Tt]abs.* \(line 1, column 1\)\.$/],
    ['Db: a: b', /^node\.yaml is not valid YAML: .+ \(line 1, column \d\)\.$/],
    ['Db: "a', /^node\.yaml is not valid YAML: .+ \(line 1, column \d\)\.$/],
    ['%YAML 1.2\nDb: a', /^node\.yaml is not valid YAML: /],
    ['{'.repeat(60_000), /^node\.yaml/],
    ['\0\u0001', /^node\.yaml/],
  ])('malformed: %.20j', (yaml, expected) => {
    expect(problems([], { yaml })).toEqual([expect.stringMatching(expected)]);
  });
  test.each([
    '*X',
    '|X',
    '>X\n a',
    '!X a',
    '@X',
    '"X',
    '"a" X',
    '{X',
    '[X]',
    '%X',
    'X: X',
    '"a": X',
    '\tX: [',
    '\n- X',
  ])('no message repeats a secret that should stand in quotes: %j', (written) => {
    const yaml = `CertificatePassword: ${written.replaceAll('X', 'S3cret-text')}\n`;
    let text = '';
    try {
      load([], { yaml });
    } catch (error) {
      text = String(error);
    }
    expect(text).not.toContain('S3cret');
  });
});

describe('which file', () => {
  test('the default one, which may be missing', () => {
    expect(load([]).file).toBe(null);
    const config = load([], { files: { '/etc/skua/skua.conf': 'NodePort: 7' } });
    expect(config.values.NodePort).toBe(7);
    expect(config.file).toBe('/etc/skua/skua.conf');
  });
  test('the command line names it, or the environment, or else the command line', () => {
    const files = { a: 'NodePort: 1', b: 'NodePort: 2' };
    expect(load(['--config', 'a'], { files }).values.NodePort).toBe(1);
    expect(load([], { files, env: { SERVER_CONFIG: 'b' } }).values.NodePort).toBe(2);
    expect(load(['--config', 'a'], { files, env: { SERVER_CONFIG: 'b' } }).values.NodePort).toBe(1);
    expect(load(['--config', 'x', '--config=b'], { files }).values.NodePort).toBe(2);
  });
  test('one that is named must be there, also the default one', () => {
    expect(problems(['--config', 'absent'])).toEqual([
      'The configuration file absent does not exist. Create it, or leave out --config.',
    ]);
    expect(problems([], { env: { SERVER_CONFIG: '/etc/skua/skua.conf' } })).toEqual([
      'The configuration file /etc/skua/skua.conf does not exist. Create it, or leave out SERVER_CONFIG.',
    ]);
    expect(problems(['--config='])).toEqual(["--config must be a path, not ''."]);
  });
});
