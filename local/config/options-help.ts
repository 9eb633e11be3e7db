import type { Colours } from '../cli/colour.ts';
import type { Command } from '../cli/command.ts';
import { table, unbroken, wrapHelp } from '../cli/help.ts';
import { commandLineName, environmentName } from './names.ts';
import type { OptionSpec } from './option.ts';
import { OPTION_GROUPS } from './options.ts';

/** `skua start --help`: every option in its group, with default and possible values. Environment-only ones come last. */
export function startHelp({ summary, details, examples }: Command, colours: Colours): string {
  const lines = [`${summary}.`, ''];
  if (details !== undefined) lines.push(...wrapHelp(details), '');
  lines.push(colours.bold('Usage'), '  skua start [options]', '');
  for (const { title, options } of OPTION_GROUPS) {
    const rows = Object.entries(options).filter(([, option]) => !option.isEnvironmentOnly).map(([name, option]) => rowOf(commandLineName(name), option));
    if (rows.length > 0) lines.push(colours.bold(title), ...table(rows), '');
  }
  const variables = OPTION_GROUPS.flatMap(({ options }) => Object.entries(options)).filter(([, option]) => option.isEnvironmentOnly);
  lines.push(colours.bold('Environment only'), ...table(variables.map(([name, option]) => [environmentName(name), describe(option)])), '');
  lines.push(colours.bold('Examples'), ...table(examples.map(({ line, does }) => [line, does])), '');
  return lines.join('\n');
}

function rowOf(spelling: string, option: OptionSpec<unknown>): readonly [string, string] {
  const { placeholder } = option.kind;
  // A switch that is on unless told otherwise is shown with the value that makes a difference.
  const value = placeholder ?? (option.fallback === true ? 'false' : null);
  return [value === null ? spelling : `${spelling} ${value}`, describe(option)];
}

function describe({ kind, description, deprecated, fallbackText }: OptionSpec<unknown>): string {
  const words = kind.words === null ? '' : ` (${kind.words.join(', ')})`;
  const fallback = fallbackText === '' || fallbackText === 'false' ? '' : ` ${unbroken(`[default: ${fallbackText}]`)}`;
  return `${description}${deprecated === null ? '' : ` (deprecated: ${deprecated})`}${words}${fallback}`;
}
