import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { dumpLines, optionsPage } from '../../../local/config/show-options.ts';
import { commandLineName, environmentName } from '../../../infra/runtime/config/option-names.ts';
import { OPTION_GROUPS, OPTIONS } from '../../../infra/runtime/config/options.ts';
import { readStartWords } from '../../../local/config/load-config.ts';
import { runProgram } from '../../../local/cli/run-command.ts';
import { COMMANDS } from '../../../local/commands/all-commands.ts';
import { FakeIo } from '../support.ts';
import { load, problemsOf } from './support.ts';

async function start(words: string[], env: Record<string, string> = {}) {
  const io = new FakeIo({ env });
  const code = await runProgram({ commands: COMMANDS, version: '1.2.3' }, ['start', ...words], io);
  return { code, out: io.out, err: io.err };
}

describe('the dump', () => {
  const lines = dumpLines(
    load(['--node-port=7', '--db=/x\ny', '--mem-db=false'], {
      env: { SERVER_CERTIFICATE_PASSWORD: 'hunter2' },
      yaml: 'ScavengeHistoryMaxAge: 30',
    }),
  );
  const [modified, defaults] = [lines.slice(0, lines.indexOf('')), lines.slice(lines.indexOf('') + 1)];
  test('has what was given, even with its default value, apart from the defaults', () => {
    expect(modified).toEqual([
      'MODIFIED OPTIONS:',
      '    Application Options:',
      '        CONFIG: node.yaml (Command Line)',
      '    Certificate Options:',
      '        CERTIFICATE PASSWORD: ******** (Environment Variables)',
      '    Database Options:',
      '        DB:     /x\\ny (Command Line)',
      '        MEM DB: false (Command Line)',
      '    Network Options:',
      '        NODE PORT: 7 (Command Line)',
      '    Scavenge Options:',
      '        SCAVENGE HISTORY MAX AGE: 30 (Yaml)',
    ]);
    expect(defaults[0]).toBe('DEFAULT OPTIONS:');
    // Nothing is masked that nobody has set: else an option looks as if it were.
    expect(defaults).toContain('        DEFAULT OPS PASSWORD:   changeit (<DEFAULT>)');
    expect(defaults).toContain('        CLUSTER SECRET:                 <empty> (<DEFAULT>)');
    expect(defaults.join('\n')).not.toContain('****');
    expect(defaults).toContain('        INDEX:                        <empty> (<DEFAULT>)');
    expect(lines.filter((line) => line.startsWith('        '))).toHaveLength(Object.keys(OPTIONS).length);
  });
  test('groups and names are in alphabetical order', () => {
    const groups = defaults.filter((line) => /^ {4}\S/.test(line));
    expect(groups).toEqual(groups.toSorted());
    const logging = defaults
      .slice(defaults.indexOf('    Logging Options:') + 1)
      .filter((line) => /^ {8}/.test(line))
      .slice(0, 7)
      .map((line) => line.trim().split(':')[0]);
    expect(logging).toEqual([
      'DISABLE LOG FILE',
      'LOG',
      'LOG CONSOLE FORMAT',
      'LOG FILE INTERVAL',
      'LOG FILE RETENTION COUNT',
      'LOG FILE SIZE',
      'LOG LEVEL',
    ]);
  });
  test('a secret that was set to nothing is shown as nothing', () => {
    expect(dumpLines(load([], { env: { SERVER_CERTIFICATE_PASSWORD: '', SERVER_CLUSTER_SECRET: 'hunter2' } }))).toEqual(
      expect.arrayContaining([
        '        CERTIFICATE PASSWORD: <empty> (Environment Variables)',
        '        CLUSTER SECRET: ******** (Environment Variables)',
      ]),
    );
  });
  test('without anything given', () => {
    expect(dumpLines(load([])).slice(0, 3)).toEqual(['MODIFIED OPTIONS:', '    (none)', '']);
  });
});

describe('--what-if', () => {
  test('shows and exits', async () => {
    const { code, out, err } = await start(['--what-if', '--node-port=7', '--http-ip=::1']);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).toContain('Skua ');
    expect(out).toContain('NODE PORT: 7 (Command Line)');
    expect(out).toMatch(/\nDEPRECATED: --http-ip is now called --node-ip\.\n$/);
  });
  test('what could not start can be shown, what is not known can not', async () => {
    expect((await start(['--what-if', '--cluster-size=0', '--db=~'])).code).toBe(0);
    expect(await start(['--what-if', '--wrong'])).toMatchObject({ code: 2, out: '' });
    expect(await start(['--what-if', '--default-admin-password=x'])).toMatchObject({ code: 2, out: '' });
    expect(await start(['--what-if'], { SERVER_NODE_PORT: 'x' })).toMatchObject({ code: 2, out: '' });
  });
});

describe('--help', () => {
  test('shows every option under its group, those of the environment last', async () => {
    const { code, out } = await start(['--help']);
    expect(code).toBe(0);
    let at = 0;
    for (const { title, options } of OPTION_GROUPS) {
      at = out.indexOf(`\n${title}\n`, at);
      expect(at).toBeGreaterThan(0);
      for (const [name, { isEnvironmentOnly, fallbackText }] of Object.entries(options)) {
        if (!isEnvironmentOnly) expect(out.indexOf(`\n  ${commandLineName(name)} `, at)).toBeGreaterThan(at);
        if (fallbackText !== '' && fallbackText !== 'false') expect(out).toContain(`[default: ${fallbackText}]`);
      }
    }
    for (const name of ['DefaultAdminPassword', 'DefaultOpsPassword'])
      expect(out.indexOf(`  ${environmentName(name)} `)).toBeGreaterThan(out.indexOf('\nEnvironment only\n'));
    for (const line of out.split('\n')) expect(line.length).toBeLessThanOrEqual(100);
  });
  test.each([
    [['-h']],
    [['-?']],
    [['-help']],
    [['--wrong', '--help']],
    [['--config', 'absent', '--help']],
    [['--Help']],
  ])('%j', async (words) => {
    const { code, out, err } = await start(words);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).toContain('skua start [options]');
  });
  test('the environment can ask for it', async () => {
    expect((await start([], { SERVER_HELP: 'true' })).out).toContain('skua start [options]');
  });
});

test('--version', async () => {
  for (const words of [['--version'], ['--wrong', '--version'], ['--version=true']])
    expect(await start(words)).toEqual({ code: 0, out: expect.stringMatching(/^\d+\.\d+\.\d+\n$/), err: '' });
});

test('wrong usage: all problems, exit code 2', async () => {
  expect(await start(['--node-prot', '1', '--db'], { SERVER_MEM_DB: '1' })).toEqual({
    code: 2,
    out: '',
    err: "error: Unknown option --node-prot. Did you mean --node-port?\n--db needs a value: --db DIR.\nSERVER_MEM_DB must be true or false, not '1'.\nSee: skua start --help\n",
  });
});

test('what is neither shown nor wrong runs', () => {
  const texts = { version: '1', help: () => 'help' };
  expect(readStartWords({ argv: ['--node-port=7'], env: {}, readFile: () => null }, texts)).toMatchObject({
    kind: 'run',
    config: { values: { NodePort: 7 } },
  });
  expect(
    problemsOf(() => readStartWords({ argv: ['--cluster-size=0'], env: {}, readFile: () => null }, texts)),
  ).toHaveLength(1);
});

describe('the documentation page', () => {
  test('is up to date: `node local/config/write-page.ts` writes it', () => {
    expect(readFileSync(new URL('../../../local/config/OPTIONS.md', import.meta.url), 'utf8')).toBe(optionsPage());
  });
  test('has every option in its spellings', () => {
    const page = optionsPage();
    for (const [name, { isEnvironmentOnly, aliases }] of Object.entries(OPTIONS)) {
      expect(page).toContain(
        isEnvironmentOnly
          ? `| \`${environmentName(name)}\` |`
          : `| \`${name}\`<br>\`${commandLineName(name)}\`<br>\`${environmentName(name)}\` |`,
      );
      for (const alias of aliases) expect(page).toContain(`\`${alias}\``);
    }
    for (const line of page.split('\n').filter((each) => each.startsWith('|')))
      expect(line.match(/(?<!\\)\|/g)).toHaveLength(5);
  });
});
