import type { Command, Input } from './command.ts';
import type { OptionTable } from './options.ts';
import { parseValue } from './options.ts';
import { didYouMean, UsageError } from './usage-error.ts';

/** A command line understood, or a call for help. */
export type Parsed<O extends OptionTable> = { readonly kind: 'help' } | { readonly kind: 'run'; readonly input: Input<O> };

/**
 * Reads the words behind a command's name: `--name value`, `--name=value`, switches, and positional arguments. `--`
 * ends the options. A repeated option counts with its last value, unless it takes several. `--help` wins over anything else that is wrong.
 */
export function parseArguments<O extends OptionTable>(command: Command<O>, words: readonly string[]): Parsed<O> {
  const end = words.indexOf('--');
  const optional = end < 0 ? words : words.slice(0, end);
  if (optional.includes('--help') || optional.includes('-h')) return { kind: 'help' };
  const values: Record<string, unknown> = {};
  for (const [name, option] of Object.entries(command.options)) values[name] = option.fallback;
  const given = new Set<string>();
  const positionals: string[] = [];
  for (let at = 0; at < words.length; at++) {
    const word = words[at]!;
    if (at === end) continue;
    if ((end >= 0 && at > end) || !word.startsWith('-') || word === '-') {
      positionals.push(word);
      continue;
    }
    const { name, inline } = splitOption(command, word);
    const option = command.options[name]!;
    let value = inline;
    if (value === null && option.placeholder === null) value = 'true';
    if (value === null) {
      const next = words[at + 1];
      if (next === undefined || next.startsWith('--')) throw new UsageError(`--${name} needs a value: --${name} ${option.placeholder}.`);
      value = next;
      at++;
    }
    const parsed = parseValue(name, option, value);
    values[name] = option.isList === true ? [...values[name] as unknown[], ...parsed as unknown[]] : parsed;
    given.add(name);
  }
  checkPositionals(command, positionals);
  return { kind: 'run', input: { options: values as Input<O>['options'], given, positionals } };
}

function splitOption<O extends OptionTable>(command: Command<O>, word: string): { name: string; inline: string | null } {
  const equals = word.indexOf('=');
  const written = (equals < 0 ? word : word.slice(0, equals)).replace(/^--?/, '');
  const inline = equals < 0 ? null : word.slice(equals + 1);
  if (word.startsWith('--') && Object.hasOwn(command.options, written)) return { name: written, inline };
  const known = Object.keys(command.options).concat('help');
  throw new UsageError(`Unknown option ${word.slice(0, equals < 0 ? undefined : equals)}.${didYouMean(written, known, '--')}`);
}

function checkPositionals<O extends OptionTable>(command: Command<O>, positionals: readonly string[]): void {
  const wanted = command.positionals ?? [];
  const missing = wanted[positionals.length];
  if (missing !== undefined && missing.isOptional !== true) throw new UsageError(`${missing.name} is missing: ${missing.help}.`);
  if (positionals.length > wanted.length && wanted.at(-1)?.isRepeated !== true) throw new UsageError(`Unexpected argument '${positionals[wanted.length]}'.`);
}
