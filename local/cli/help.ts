import type { Colours } from '../../infra/runtime/io.ts';
import type { Command } from './command.ts';

const WIDTH = 100;

/** `--help` of the program. */
export function programHelp(commands: readonly Command[], version: string, colours: Colours): string {
  return [
    `skua ${version}: an event store that cleans up after itself.`,
    '',
    colours.bold('Usage'),
    '  skua COMMAND [options]',
    '',
    colours.bold('Commands'),
    ...table([
      ...rowsOf(commands),
      ['help [COMMAND]', 'Show help, or the help of one command'],
      ['--version', 'Show the version'],
    ]),
    '',
    colours.bold('Examples'),
    ...firstExamples(commands),
    '',
    'Exit codes: 0 done, 1 failed or errors found, 2 wrong usage, 3 node or storage unreachable,',
    '4 refused, 130 interrupted.',
    '',
  ].join('\n');
}

/** `--help` of the first word of several commands. */
export function groupHelp(word: string, commands: readonly Command[], colours: Colours): string {
  return [
    colours.bold('Usage'),
    `  skua ${word} COMMAND [options]`,
    '',
    colours.bold('Commands'),
    ...table(rowsOf(commands)),
    '',
    colours.bold('Examples'),
    ...firstExamples(commands),
    '',
    `skua ${word} COMMAND --help shows the help of one.`,
    '',
  ].join('\n');
}

function rowsOf(commands: readonly Command[]): (readonly [string, string])[] {
  return commands.map(
    (command) =>
      [
        usageOf(command)
          .replace(/^skua /, '')
          .replace(' [options]', ''),
        command.summary,
      ] as const,
  );
}

function firstExamples(commands: readonly Command[]): string[] {
  return table(
    commands.flatMap((command) => command.examples.slice(0, 1).map((example) => [example.line, example.does] as const)),
  );
}

/** `--help` of one command. */
export function commandHelp(command: Command, colours: Colours): string {
  const options = Object.entries(command.options).map(
    ([name, option]) =>
      [
        `--${name}${option.placeholder === null ? '' : ` ${option.placeholder}`}`,
        option.help + (option.fallbackText === '' ? '' : ` ${unbroken(`[default: ${option.fallbackText}]`)}`),
      ] as const,
  );
  const positionals = (command.positionals ?? []).map(
    (positional) => [positional.name, sentence(positional.help)] as const,
  );
  const lines = [`${command.summary}.`, ''];
  if (command.details !== undefined) lines.push(...wrapHelp(command.details), '');
  lines.push(colours.bold('Usage'), `  ${usageOf(command)}`, '');
  if (positionals.length > 0) lines.push(colours.bold('Arguments'), ...table(positionals), '');
  lines.push(colours.bold('Options'), ...table([...options, ['--help', 'Show this help']]), '');
  lines.push(
    colours.bold('Examples'),
    ...table(command.examples.map((example) => [example.line, example.does] as const)),
    '',
  );
  return lines.join('\n');
}

function usageOf(command: Command): string {
  const positionals = (command.positionals ?? [])
    .map(({ name, isOptional, isRepeated }) => {
      const shown = isRepeated === true ? `${name}...` : name;
      return isOptional === true ? ` [${shown}]` : ` ${shown}`;
    })
    .join('');
  return `skua ${command.name}${positionals} [options]`;
}

function sentence(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

/** Two columns, the second one wrapped. */
export function table(rows: readonly (readonly [string, string])[]): string[] {
  const left = Math.max(...rows.map(([first]) => first.length)) + 2;
  return rows.flatMap(([first, second]) =>
    wrap(second, WIDTH - left - 2).map((text, i) => `  ${(i === 0 ? first : '').padEnd(left)}${text}`.trimEnd()),
  );
}

/** Lines of running text. */
export function wrapHelp(text: string): string[] {
  return wrap(text, WIDTH);
}

/** Space at which no line is broken. */
const HARD_SPACE = '\u00a0';

export function unbroken(text: string): string {
  return text.replaceAll(' ', HARD_SPACE);
}

function wrap(text: string, width: number): string[] {
  const lines: string[] = [''];
  for (const word of text.split(' ')) {
    const last = lines[lines.length - 1]!;
    if (last !== '' && last.length + word.length >= width) lines.push(word);
    else lines[lines.length - 1] = last === '' ? word : `${last} ${word}`;
  }
  return lines.map((each) => each.replaceAll(HARD_SPACE, ' '));
}
