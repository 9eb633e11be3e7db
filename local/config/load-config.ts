import { EXIT } from '../../infra/runtime/io.ts';
import type { ExitCode } from '../../infra/runtime/io.ts';
import { checkConfig } from './check-config.ts';
import { ConfigError } from '../../infra/runtime/config/option.ts';
import { diffOf, viewOf } from './config.ts';
import type { Config } from './config.ts';
import { dumpLines } from './show-options.ts';
import { mergeReadings } from '../../infra/runtime/config/merge.ts';
import type { Merged, SourceReading } from '../../infra/runtime/config/merge.ts';
import { commandLineName, Names } from '../../infra/runtime/config/option-names.ts';
import type { OptionGroup } from '../../infra/runtime/config/option.ts';
import { OPTION_GROUPS, OPTIONS } from '../../infra/runtime/config/options.ts';
import type { OptionName, Values } from '../../infra/runtime/config/options.ts';
import { NOTHING, readCommandLine, readEnvironment } from '../../infra/runtime/config/sources.ts';
import type { Environment, Reading } from '../../infra/runtime/config/sources.ts';
import { readYaml } from './yaml.ts';

export interface ConfigSources {
  /** The words behind `skua start`. */
  readonly argv: readonly string[];
  readonly env: Environment;
  /** The text of a file; null where there is none. Throws what keeps it from being read. */
  readonly readFile: (path: string) => string | null;
}

/**
 * The options of a node: defaults, under the YAML file, under the environment, under the command line. Throws a
 * ConfigError with everything that is wrong: unknown names, values, combinations.
 */
export function loadConfig(sources: ConfigSources, groups: readonly OptionGroup[] = OPTION_GROUPS): Config {
  const names = new Names(groups);
  const commandLine = readCommandLine(sources.argv, names);
  const environment = readEnvironment(sources.env, names);
  const place = fileOf([commandLine, environment]);
  const { file } = place;
  const build = (): Config => {
    const yaml = readFile(sources, place, names);
    const readings: SourceReading[] = [
      { source: 'Command Line', reading: commandLine },
      { source: 'Environment Variables', reading: environment },
      { source: 'Yaml', reading: yaml ?? NOTHING },
    ];
    return configOf(mergeReadings(groups, readings), yaml === null ? null : file, reread);
  };
  // Command line and environment of a process don't change: what is wrong now must be wrong in the file.
  const reread = () => {
    try {
      return build();
    } catch (error) {
      throw error instanceof ConfigError ? new ConfigError(error.problems, file) : error;
    }
  };
  return build();
}

interface Place {
  readonly file: string;
  /** How it was named; null for the default file, which may be missing. */
  readonly spelling: string | null;
}

/** The file that command line or environment name, or the default one. */
function fileOf(readings: readonly Reading[]): Place {
  for (const { given } of readings) {
    const found = given.findLast(({ name }) => name === 'Config');
    if (found !== undefined) return { file: found.text, spelling: found.spelling };
  }
  return { file: OPTIONS.Config.fallback, spelling: null };
}

/** Null for the default file that is not there, and for an empty path, which is refused as the value that it is. */
function readFile({ readFile: read }: ConfigSources, { file, spelling }: Place, names: Names): Reading | null {
  if (file === '') return null;
  let text: string | null;
  try {
    text = read(file);
  } catch (error) {
    throw new ConfigError(
      [`The configuration file ${file} can't be read: ${error instanceof Error ? error.message : String(error)}.`],
      file,
    );
  }
  if (text === null && spelling !== null)
    throw new ConfigError(
      [`The configuration file ${file} does not exist. Create it, or leave out ${spelling}.`],
      file,
    );
  return text === null ? null : readYaml(text, file, names);
}

function configOf(merged: Merged, file: string | null, reread: () => Config): Config {
  const { settings, unknown } = merged;
  const values = Object.fromEntries([...settings].map(([name, { value }]) => [name, value])) as Values;
  const given = (name: OptionName) => settings.get(name)!.source !== '<DEFAULT>';
  if (unknown.length > 0 && !values.AllowUnknownOptions)
    throw new ConfigError([...unknown, 'To start anyway, add --allow-unknown-options.']);
  const warnings = [...merged.warnings, ...unknown];
  const config: Config = {
    values,
    settings,
    file,
    warnings,
    given,
    reread,
    views: [...settings.values()].map(viewOf),
    spelling: (name) => settings.get(name)?.spelling ?? commandLineName(name),
    diff: (other) => diffOf(config, other),
  };
  // What is only shown need not be able to start.
  if (!values.WhatIf) warnings.push(...checkConfig(config));
  return config;
}

/** What the words behind `skua start` ask for: a node, or only something to read. */
export type StartOutcome =
  | { readonly kind: 'run'; readonly config: Config }
  | { readonly kind: 'exit'; readonly text: string; readonly exitCode: ExitCode };

export interface StartTexts {
  readonly version: string;
  help(): string;
}

const HELP: ReadonlySet<string> = new Set(['--help', '-help', '-h', '-?']);
const VERSION: ReadonlySet<string> = new Set(['--version', '-version']);

/** Understands the words. `--help` and `--version` win over anything that is wrong; else a ConfigError is thrown. */
export function readStartWords(sources: ConfigSources, texts: StartTexts): StartOutcome {
  const exit = (text: string): StartOutcome => ({ kind: 'exit', text, exitCode: EXIT.ok });
  if (sources.argv.some((word) => HELP.has(word))) return exit(texts.help());
  if (sources.argv.some((word) => VERSION.has(word))) return exit(`${texts.version}\n`);
  const config = loadConfig(sources);
  if (config.values.Help) return exit(texts.help());
  if (config.values.Version) return exit(`${texts.version}\n`);
  if (config.values.WhatIf)
    return exit(
      [`Skua ${texts.version}`, '', ...dumpLines(config), '', ...config.warnings].join('\n').trimEnd() + '\n',
    );
  return { kind: 'run', config };
}
