import { ENVIRONMENT_PREFIX, environmentName } from './names.ts';
import type { Names } from './names.ts';
import type { Given, Reading } from './reading.ts';
import { shown } from './shown.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Reads the variables `SERVER_...`. The prefix is upper case; behind it case and underscores don't count. */
export function readEnvironment(env: Environment, names: Names): Reading {
  const given: Given[] = [];
  const unknown: string[] = [];
  const problems: string[] = [];
  const seen = new Map<string, string>();
  for (const variable of Object.keys(env).filter((each) => each.startsWith(ENVIRONMENT_PREFIX)).toSorted()) {
    const text = env[variable];
    if (text === undefined) continue;
    const written = variable.slice(ENVIRONMENT_PREFIX.length);
    const found = names.find(written);
    if (found === null) {
      unknown.push(`Unknown environment variable ${shown(variable)}.${names.suggestion(written, environmentName)}`);
      continue;
    }
    // Variables have no order, so that none of two could win.
    const key = found.alias ?? found.name;
    const other = seen.get(key);
    if (other !== undefined) problems.push(`${other} and ${variable} are the same option: set one of them.`);
    seen.set(key, variable);
    given.push({ name: found.name, alias: found.alias, spelling: variable, text });
  }
  return { given, unknown, problems };
}
