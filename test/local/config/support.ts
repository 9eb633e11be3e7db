import type { Config } from '../../../local/config/config.ts';
import { ConfigError } from '../../../infra/runtime/config/option.ts';
import { loadConfig } from '../../../local/config/load-config.ts';
import type { OptionGroup } from '../../../infra/runtime/config/option.ts';

export interface Given {
  readonly env?: Readonly<Record<string, string>>;
  /** Content of `node.yaml`, which the command line then names. */
  readonly yaml?: string;
  readonly files?: Readonly<Record<string, string>>;
  readonly groups?: readonly OptionGroup[];
}

/** The configuration that command line, environment and file give. */
export function load(words: readonly string[], { env = {}, yaml, files = {}, groups }: Given = {}): Config {
  const all: Readonly<Record<string, string>> = { ...files, ...(yaml !== undefined && { 'node.yaml': yaml }) };
  const argv = yaml === undefined ? words : [...words, '--config', 'node.yaml'];
  return loadConfig({ argv, env, readFile: (path) => all[path] ?? null }, ...(groups === undefined ? [] : [groups]));
}

/** The problems that keep it from being loaded. */
export function problems(words: readonly string[], given: Given = {}): readonly string[] {
  return problemsOf(() => load(words, given));
}

export function problemsOf(run: () => unknown): readonly string[] {
  try {
    run();
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}
