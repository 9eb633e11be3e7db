import { describe, expect, test } from 'vitest';
import { defineCommand } from '../../../local/cli/command.ts';
import type { ExitCode } from '../../../infra/runtime/io.ts';
import { address, flag, integer, text, texts } from '../../../infra/runtime/command-options.ts';
import { parseArguments } from '../../../local/cli/run-command.ts';
import { didYouMean, editDistance, UsageError } from '../../../infra/runtime/failure.ts';

const command = defineCommand({
  name: 'try',
  summary: 'Try options',
  positionals: [{ name: 'DIR', help: 'the directory' }],
  options: {
    db: text('DIR', './data', 'Directory'),
    'node-port': integer('PORT', 0, 65_535, 2113, 'Port'),
    'mem-db': flag('Memory'),
    node: address('URL', 'none', 'Node'),
    threshold: integer('WEIGHT', -5, 5, 0, 'Threshold'),
    event: texts('ID', 'Events'),
  },
  examples: [{ line: 'skua try .', does: 'Try' }],
  run: async (): Promise<ExitCode> => 0,
});

function parse(...words: string[]) {
  const parsed = parseArguments(command, ['here', ...words]);
  if (parsed.kind === 'help') throw new Error('help');
  return parsed.input;
}

function refusal(...words: string[]): string {
  try {
    parseArguments(command, words);
  } catch (error) {
    if (error instanceof UsageError) return error.message;
    throw error;
  }
  return 'accepted';
}

describe('what is accepted', () => {
  test('defaults', () => {
    expect(parse().options).toEqual({
      db: './data',
      'node-port': 2113,
      'mem-db': false,
      node: null,
      threshold: 0,
      event: [],
    });
  });
  test('both forms of a value, and the last of several', () => {
    const { options, given } = parse('--db', 'a', '--node-port=0', '--db=b', '--mem-db');
    expect(options).toMatchObject({ db: 'b', 'node-port': 0, 'mem-db': true });
    expect([...given]).toEqual(['db', 'node-port', 'mem-db']);
  });
  test('a value that begins with a dash, and one with an equals sign', () => {
    expect(parse('--db=-x').options).toMatchObject({ db: '-x' });
    expect(parse('--db', 'a=b').options).toMatchObject({ db: 'a=b' });
    expect(parse('--db=a=b').options).toMatchObject({ db: 'a=b' });
  });
  test('a list grows each time it is given', () => {
    expect(parse('--event', 'a', '--event=b', '--event', 'a').options).toMatchObject({ event: ['a', 'b', 'a'] });
  });
  test('negative numbers, where they are allowed', () => {
    expect(parse('--threshold', '-5').options).toMatchObject({ threshold: -5 });
    expect(parse('--threshold=-1').options).toMatchObject({ threshold: -1 });
  });
  test('arguments that may be left out, and given several times', () => {
    const several = defineCommand({
      name: 'several',
      summary: '',
      options: {},
      positionals: [{ name: 'ID', help: '', isOptional: true, isRepeated: true }],
      examples: [],
      run: async (): Promise<ExitCode> => 0,
    });
    expect(parseArguments(several, [])).toMatchObject({ input: { positionals: [] } });
    expect(parseArguments(several, ['a', 'b'])).toMatchObject({ input: { positionals: ['a', 'b'] } });
  });
  test('a switch with a value', () => {
    expect(parse('--mem-db', '--mem-db=false').options).toMatchObject({ 'mem-db': false });
  });
  test('behind -- all words are arguments', () => {
    expect(
      parseArguments(command, ['--', '--odd']).kind === 'run' && parseArguments(command, ['--', '--odd']),
    ).toMatchObject({ input: { positionals: ['--odd'] } });
  });
  test('help wins over mistakes', () => {
    expect(parseArguments(command, ['--wrong', '--help'])).toEqual({ kind: 'help' });
    expect(parseArguments(command, ['-h'])).toEqual({ kind: 'help' });
  });
});

describe('what is refused', () => {
  test.each([
    [['.', '--nod-port', '1'], 'Unknown option --nod-port. Did you mean --node-port?'],
    [['.', '--memdb=true'], 'Unknown option --memdb. Did you mean --mem-db?'],
    [['.', '--thresh'], 'Unknown option --thresh. Did you mean --threshold?'],
    [['.', '--zzzzzz'], 'Unknown option --zzzzzz.'],
    [['.', '--toString'], 'Unknown option --toString.'],
    [['.', '-x'], 'Unknown option -x.'],
    [['.', '--db'], '--db needs a value: --db DIR.'],
    [['.', '--db', '--mem-db'], '--db needs a value: --db DIR.'],
    [['.', '--db='], "--db must be a non-empty string, not ''."],
    [['.', '--mem-db=maybe'], "--mem-db must be true or false, not 'maybe'."],
    [['.', '--node-port', '65536'], "--node-port must be a whole number from 0 to 65535, not '65536'."],
    [['.', '--node-port', '-1'], "--node-port must be a whole number from 0 to 65535, not '-1'."],
    [['.', '--node-port', '0x10'], "--node-port must be a whole number from 0 to 65535, not '0x10'."],
    [['.', '--threshold', '-6'], "--threshold must be a whole number from -5 to 5, not '-6'."],
    [['.', '--event='], "--event must be a non-empty string, not ''."],
    [
      ['.', '--node', '127.0.0.1:2113'],
      "--node must be an address such as http://127.0.0.1:2113, not '127.0.0.1:2113'.",
    ],
    [[], 'DIR is missing: the directory.'],
    [['a', 'b'], "Unexpected argument 'b'."],
  ])('%j', (words, message) => {
    expect(refusal(...words)).toBe(message);
  });
});

test('edit distance counts a swap of neighbours as one', () => {
  expect(editDistance('', 'abc')).toBe(3);
  expect(editDistance('verify', 'verify')).toBe(0);
  expect(editDistance('verfiy', 'verify')).toBe(1);
  expect(editDistance('kitten', 'sitting')).toBe(3);
});

test('a suggestion only where one is near', () => {
  expect(didYouMean('strat', ['start', 'verify'])).toBe(' Did you mean start?');
  expect(didYouMean('x', ['db'])).toBe('');
});
