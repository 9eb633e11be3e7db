import type { ExitCode } from '../cli/io.ts';
import { EXIT } from '../cli/io.ts';
import type { Config } from './config.ts';
import { dumpLines } from './dump.ts';
import { loadConfig } from './load-config.ts';
import type { ConfigSources } from './load-config.ts';

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
  if (config.values.WhatIf) return exit([`Skua ${texts.version}`, '', ...dumpLines(config), '', ...config.warnings].join('\n').trimEnd() + '\n');
  return { kind: 'run', config };
}
