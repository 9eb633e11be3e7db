import { ConfigError } from './option.ts';
import { commandLineName, environmentName } from './option-names.ts';
import type { OptionGroup, OptionSpec } from './option.ts';
import type { Given, Reading } from './sources.ts';
import { shown } from './sources.ts';

/** Where a value comes from, as `/info/options` and the dump call it. */
export type Source = 'Command Line' | 'Environment Variables' | 'Yaml' | '<DEFAULT>';

/** One option as it is in force. */
export interface Setting {
  readonly name: string;
  readonly group: string;
  readonly option: OptionSpec<unknown>;
  readonly value: unknown;
  readonly source: Source;
  /** How messages name it: as it was given. */
  readonly spelling: string;
}

export interface SourceReading {
  readonly source: Exclude<Source, '<DEFAULT>'>;
  readonly reading: Reading;
}

export interface Merged {
  readonly settings: ReadonlyMap<string, Setting>;
  readonly warnings: readonly string[];
  /** Messages about names that are no option's. */
  readonly unknown: readonly string[];
}

/**
 * Puts the sources together, the weightiest first. Only the value that counts is parsed. Throws a ConfigError with all
 * that is wrong, apart from unknown names.
 */
export function mergeReadings(groups: readonly OptionGroup[], sources: readonly SourceReading[]): Merged {
  const settings = new Map<string, Setting>();
  const problems = sources.flatMap(({ reading }) => reading.problems);
  const deprecated: string[] = [];
  for (const { title, options } of groups) {
    for (const [name, option] of Object.entries(options)) {
      const setting: Setting = {
        name,
        group: title,
        option,
        value: option.fallback,
        source: '<DEFAULT>',
        spelling: commandLineName(name),
      };
      const winner = winnerOf(name, sources);
      if (winner === null) {
        settings.set(name, setting);
        continue;
      }
      const { given, source } = winner;
      problems.push(...misplaced(name, option, sources));
      const parsed = option.kind.parse(given.text);
      if ('allowed' in parsed) {
        problems.push(
          `${given.spelling} must be ${parsed.allowed}${option.isSensitive ? '' : `, not '${shown(given.text)}'`}.`,
        );
        continue;
      }
      settings.set(name, { ...setting, value: parsed.value, source, spelling: given.spelling });
      if (given.alias !== null) deprecated.push(`${given.spelling} is now called ${spellLike(source, name)}.`);
      else if (option.deprecated !== null && option.kind.show(parsed.value) !== option.kind.show(option.fallback))
        deprecated.push(`${given.spelling}: ${option.deprecated}.`);
    }
  }
  const unknown = sources.flatMap(({ reading }) => reading.unknown);
  if (problems.length > 0) throw new ConfigError([...unknown, ...new Set(problems)]);
  const warnings = [
    ...(deprecated.length === 0 ? [] : [`DEPRECATED: ${deprecated.join(' ')}`]),
    ...sources.flatMap(({ reading }) => reading.warnings),
  ];
  return { settings, warnings, unknown };
}

/** Of several values the present name's wins over a former one's, and among those the last. */
function winnerOf(
  name: string,
  sources: readonly SourceReading[],
): { given: Given; source: SourceReading['source'] } | null {
  for (const { source, reading } of sources) {
    const all = reading.given.filter((each) => each.name === name);
    const given = all.findLast(({ alias }) => alias === null) ?? all.at(-1);
    if (given !== undefined) return { given, source };
  }
  return null;
}

/** Options that must not stand where they stand, whether they count or not. */
function misplaced(name: string, option: OptionSpec<unknown>, sources: readonly SourceReading[]): string[] {
  return sources.flatMap(({ source, reading }) =>
    reading.given
      .filter((each) => each.name === name)
      .flatMap(({ spelling }) => {
        if (option.isEnvironmentOnly && source !== 'Environment Variables')
          return [`${spelling} can only be set in the environment, as ${environmentName(name)}.`];
        return name === 'Config' && source === 'Yaml' ? [`${spelling} has no effect inside the file: remove it.`] : [];
      }),
  );
}

function spellLike(source: Source, name: string): string {
  if (source === 'Environment Variables') return environmentName(name);
  return source === 'Yaml' ? name : commandLineName(name);
}
