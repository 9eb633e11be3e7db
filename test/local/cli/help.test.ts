import { describe, expect, test } from 'vitest';
import { runProgram } from '../../../local/cli/run-command.ts';
import { COMMANDS } from '../../../local/commands/all-commands.ts';
import { FakeIo } from '../support.ts';
import { commandLineName } from '../../../infra/runtime/config/option-names.ts';
import { OPTIONS } from '../../../infra/runtime/config/options.ts';

const startOptions = Object.entries(OPTIONS)
  .filter(([, option]) => !option.isEnvironmentOnly)
  .map(([name]) => commandLineName(name).slice(2));

async function run(words: string[], io = new FakeIo()) {
  const code = await runProgram({ commands: COMMANDS, version: '1.2.3' }, words, io);
  return { code, out: io.out, err: io.err };
}

describe('help', () => {
  test.each([[[]], [['--help']], [['-h']], [['help']]])('of the program: %j', async (words) => {
    const { code, out, err } = await run(words);
    expect(code).toBe(0);
    expect(err).toBe('');
    for (const command of COMMANDS) expect(out).toContain(`  ${command.name}`);
    expect(out).toContain('help [COMMAND]');
  });
  test.each(COMMANDS.map((command) => [command.name]))('of %s, with its options and an example', async (name) => {
    const command = COMMANDS.find((each) => each.name === name)!;
    const { code, out } = await run([...name.split(' '), '--help']);
    expect(code).toBe(0);
    for (const option of name === 'start' ? startOptions : Object.keys(command.options))
      expect(out).toContain(`--${option}`);
    for (const example of command.examples) expect(out).toContain(example.line);
    expect((await run(['help', ...name.split(' ')])).out).toBe(out);
    for (const line of out.split('\n')) expect(line.length).toBeLessThanOrEqual(100);
  });
  test('defaults are named', async () => {
    const { out } = await run(['start', '--help']);
    expect(out).toContain('[default: ./data]');
    expect(out).toContain('[default: 2113]');
  });
  test.each([[['scavenge', '-h']], [['scavenge', '--help']], [['help', 'scavenge']]])(
    'of commands with the same first word: %j',
    async (words) => {
      const { code, out, err } = await run(words);
      expect({ code, err }).toEqual({ code: 0, err: '' });
      for (const name of ['start', 'stop [ID]', 'status', 'watch', 'offline DIR'])
        expect(out).toContain(`  scavenge ${name} `);
      expect(out).not.toContain('verify');
      for (const line of out.split('\n')) expect(line.length).toBeLessThanOrEqual(100);
    },
  );
  test('periods of backups are those of UTC, and count where they have any', async () => {
    const out = (await run(['backup', 'prune', '--help'])).out.replace(/\s+/g, ' ');
    for (const period of ['hours (UTC)', 'days (UTC)', 'weeks (Monday to Sunday, UTC)'])
      expect(out).toContain(`Number of newest ${period} with backups, of each of which to keep the last`);
    const ofNode = (await run(['start', '--help', '--all'])).out.replace(/\s+/g, ' ');
    for (const period of ['an hour (UTC)', 'a day (UTC)', 'a week (Monday to Sunday, UTC)'])
      expect(ofNode).toContain(`Last backups of ${period} to keep after a backup`);
  });
  test('optional and repeated arguments are shown as such', async () => {
    expect((await run(['prove-erased', '--help'])).out).toContain('skua prove-erased [ID...] [options]');
    expect((await run(['scavenge', 'stop', '--help'])).out).toContain('skua scavenge stop [ID] [options]');
  });
  test('version', async () => {
    expect(await run(['--version'])).toEqual({ code: 0, out: '1.2.3\n', err: '' });
  });
});

describe('wrong usage is exit code 2, on stderr, with a way on', () => {
  const groups = [
    ...new Set(
      COMMANDS.map(({ name }) => name.split(' '))
        .filter((words) => words.length > 1)
        .map(([first]) => first!),
    ),
  ];
  test.each(groups)('skua %s without a word behind it shows what may follow', async (group) => {
    const { code, out, err } = await run([group]);
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toContain(`error: skua ${group} needs a command after it.\n`);
    for (const { name } of COMMANDS) expect(err.includes(`  ${name} `)).toBe(name.startsWith(`${group} `));
  });
  test('these are all groups that there are', () =>
    expect(groups).toEqual(expect.arrayContaining(['scavenge', 'auto-scavenge', 'backup', 'webhook', 'functions'])));
  test.each([
    [['strat'], "error: Unknown command 'strat'. Did you mean skua start?\nSee: skua --help\n"],
    [['help', 'verfy'], "error: Unknown command 'verfy'. Did you mean skua verify?\nSee: skua --help\n"],
    [['--db', 'x'], "error: The first word must be a command, not '--db'.\nSee: skua --help\n"],
    [
      ['scavenge', 'strat'],
      "error: Unknown command 'scavenge strat'. Did you mean skua scavenge start?\nSee: skua scavenge --help\n",
    ],
    [['scavenge', '--watch'], 'error: skua scavenge needs a command before --watch.\nSee: skua scavenge --help\n'],
    [['scavange', 'start'], "error: Unknown command 'scavange'. Did you mean skua scavenge?\nSee: skua --help\n"],
    [
      ['scavenge', 'start', '--treads', '2'],
      'error: Unknown option --treads. Did you mean --threads?\nSee: skua scavenge start --help\n',
    ],
    [
      ['scavenge', 'start', '--threads', '2', '--throttle-percent', '50'],
      'error: --throttle-percent must be 100 with more than one thread.\nSee: skua scavenge start --help\n',
    ],
    [
      ['scavenge', 'start', '--dry-run', '--watch'],
      'error: --dry-run always waits for its report: leave out --watch and --wait.\nSee: skua scavenge start --help\n',
    ],
    [['scavenge', 'offline'], 'error: DIR is missing: the data directory.\nSee: skua scavenge offline --help\n'],
    [
      ['explain', 's', '--db', '.', '--node', 'http://x'],
      'error: --node asks a running node and --db reads a directory: give one of them.\nSee: skua explain --help\n',
    ],
    [['prove-erased'], 'error: Name what to search for: --stream NAME or --event ID.\nSee: skua prove-erased --help\n'],
    [
      ['prove-erased', '--event', 'x'],
      "error: 'x' is not an event id. An id looks like 9c2f4a1b-7e3d-4b5a-a6c8-d9e0f1a2b3c4.\nSee: skua prove-erased --help\n",
    ],
    [['verify'], 'error: DIR is missing: the data directory, or s3://bucket/prefix.\nSee: skua verify --help\n'],
  ])('%j', async (words, err) => {
    expect(await run(words)).toEqual({ code: 2, out: '', err });
  });
});

test('colours only on a terminal, and not with NO_COLOR', async () => {
  const escape = '\u001B[';
  expect((await run(['--help'])).out).not.toContain(escape);
  expect((await run(['--help'], new FakeIo({ isTTY: true }))).out).toContain(escape);
  expect((await run(['--help'], new FakeIo({ isTTY: true, env: { NO_COLOR: '1' } }))).out).not.toContain(escape);
});

test('a defect is told as one', async () => {
  const io = new FakeIo();
  const broken = {
    ...COMMANDS[0]!,
    name: 'broken',
    options: {},
    run: async () => {
      throw new TypeError('oops');
    },
  };
  expect(await runProgram({ commands: [broken], version: '1' }, ['broken'], io)).toBe(1);
  expect(io.err).toContain('error internal: This is a defect of Skua. TypeError: oops');
});
