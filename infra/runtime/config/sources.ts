import { shown as shownText } from '../io.ts';
import { commandLineName, ENVIRONMENT_PREFIX, environmentName } from './option-names.ts';
import type { Found, Names } from './option-names.ts';
import { isServiceVariable, REFERENCE_PREFIXES } from './reference.ts';

const WORD = /^(--?|\/|)([a-z][a-z0-9_:-]*?)([+-]?)(?:=(.*))?$/is;
const BOOLEAN = /^(true|false)$/i;

/** A word of the command line, taken apart. */
interface Word {
  readonly written: string;
  readonly found: Found;
  readonly suffix: '' | '+' | '-';
  readonly inline: string | null;
}

/**
 * Reads the words behind `skua start`: `--name value`, `--name=value`, the same with one dash or a slash, `name=value`,
 * and for switches `--name`, `--name+` and `--name-`. A switch takes the next word only when that is `true` or
 * `false`; every other option takes it unless it is an option itself.
 */
export function readCommandLine(words: readonly string[], names: Names): Reading {
  const given: Given[] = [];
  const unknown: string[] = [];
  const problems: string[] = [];
  for (let at = 0; at < words.length; at++) {
    const written = words[at]!;
    const word = wordOf(written, names);
    if (word === null) {
      if (!isOptionLike(written)) problems.push(`Unexpected argument '${shown(written)}'.`);
      else {
        const name = written.split('=', 1)[0]!;
        unknown.push(`Unknown option ${shown(name)}.${names.suggestion(name.replace(/^--?/, ''), commandLineName)}`);
        // What stands behind it is most likely its value: one mistake, one message.
        if (!written.includes('=') && words[at + 1]?.startsWith('-') === false) at++;
      }
      continue;
    }
    const { found } = word;
    const isSwitch = found.option.kind.placeholder === null;
    const spelling = commandLineName(found.alias ?? found.name);
    const add = (text: string) => given.push({ name: found.name, alias: found.alias, spelling, text });
    const next = words[at + 1];
    if (word.suffix !== '') {
      if (isSwitch && word.inline === null) add(String(word.suffix === '+'));
      else
        problems.push(
          `${shown(written)} is not valid: only a switch can have ${word.suffix} after its name, and then no value.`,
        );
    } else if (word.inline !== null) add(word.inline);
    else if (isSwitch && (next === undefined || !BOOLEAN.test(next))) add('true');
    else if (next === undefined || next.startsWith('--') || (next.startsWith('-') && wordOf(next, names) !== null)) {
      problems.push(`${spelling} needs a value: ${spelling} ${found.option.kind.placeholder}.`);
    } else {
      add(next);
      at++;
    }
  }
  return { given, unknown, problems, warnings: [] };
}

function isOptionLike(written: string): boolean {
  return /^--?[^-=]/.test(written);
}

/** Null for a word that names no option. Without a dash or slash before it, a name counts only in `name=value`. */
function wordOf(written: string, names: Names): Word | null {
  const parts = WORD.exec(written);
  if (parts === null) return null;
  const [, lead, name, suffix, inline] = parts;
  if (lead === '' && inline === undefined) return null;
  const found = names.find(name!);
  return found === null ? null : { written, found, suffix: suffix as Word['suffix'], inline: inline ?? null };
}

export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Reads the variables `SERVER_...`. The prefix is upper case; behind it case and underscores don't count. Names that
 * are near to an option's are taken for typing errors; of others, which may be meant for another program, there is a
 * warning, and so of all variables of the reference database.
 */
export function readEnvironment(env: Environment, names: Names): Reading {
  const given: Given[] = [];
  const unknown: string[] = [];
  const problems: string[] = [];
  const warnings: string[] = [];
  const services: string[] = [];
  const seen = new Map<string, string>();
  for (const variable of Object.keys(env)
    .filter((each) => each.startsWith(ENVIRONMENT_PREFIX))
    .toSorted()) {
    const text = env[variable];
    if (text === undefined) continue;
    const written = variable.slice(ENVIRONMENT_PREFIX.length);
    if (isServiceVariable(variable, text)) {
      services.push(variable);
      continue;
    }
    const found = names.find(written);
    if (found === null) {
      const absence = names.absence(written);
      const suggestion = names.suggestion(written, environmentName);
      if (absence !== null)
        warnings.push(`${shown(variable)} is ignored: EventStoreDB has this option, but Skua does not: ${absence}.`);
      else if (written === '' || suggestion !== '')
        unknown.push(`Unknown environment variable ${shown(variable)}.${suggestion}`);
      else
        warnings.push(
          `Unknown environment variable ${shown(variable)} is ignored.${names.shorter(written, environmentName)}`,
        );
      continue;
    }
    // Variables have no order, so that none of two could win.
    const key = found.alias ?? found.name;
    const other = seen.get(key);
    if (other !== undefined) problems.push(`${other} and ${variable} are the same option: set one of them.`);
    seen.set(key, variable);
    given.push({ name: found.name, alias: found.alias, spelling: variable, text });
  }
  return {
    given,
    unknown,
    problems,
    warnings: [...warnings, ...referenceVariables(env, names, services), ...serviceWarning(services)],
  };
}

/** What becomes of the variables of the reference database: nothing, and the warnings say what to set instead. */
function referenceVariables(env: Environment, names: Names, services: string[]): string[] {
  const warnings: string[] = [];
  for (const variable of Object.keys(env).toSorted()) {
    const prefix = REFERENCE_PREFIXES.find((each) => variable.startsWith(each));
    const text = env[variable];
    if (prefix === undefined || text === undefined) continue;
    const written = variable.slice(prefix.length);
    const found = names.find(written);
    if (isServiceVariable(variable, text)) services.push(variable);
    else if (found !== null) {
      const counterpart = environmentName(found.name);
      warnings.push(
        `${shown(variable)} has no effect here: its counterpart is ${counterpart}${env[counterpart] === undefined ? ', which is not set' : ', which is set'}.`,
      );
    } else {
      const absence = names.absence(written);
      warnings.push(
        `${shown(variable)} has no effect here, and has no counterpart${absence === null ? '' : `: ${absence}`}.${absence === null ? names.suggestion(written, environmentName) : ''}`,
      );
    }
  }
  return warnings;
}

/** Variables that one warning names. */
const SERVICES_SHOWN = 20;

function serviceWarning(variables: readonly string[]): string[] {
  if (variables.length === 0) return [];
  const more = variables.length > SERVICES_SHOWN ? ` and ${variables.length - SERVICES_SHOWN} more` : '';
  return [
    `${variables.slice(0, SERVICES_SHOWN).map(shown).join(', ')}${more}: ignored, because orchestrators set such variables for services. (In a pod, set enableServiceLinks: false to avoid them.)`,
  ];
}

/** One value that a source gives for an option. */
export interface Given {
  /** The option's present name. */
  readonly name: string;
  /** The former name that was used; null for the present one. */
  readonly alias: string | null;
  /** How messages name it: `--node-port`, `SERVER_NODE_PORT`, `NodePort (/etc/skua/skua.conf:3)`. */
  readonly spelling: string;
  readonly text: string;
}

/** What one source of options says. */
export interface Reading {
  readonly given: readonly Given[];
  /** A message for each name that is no option's. */
  readonly unknown: readonly string[];
  /** Messages about what can't be understood. */
  readonly problems: readonly string[];
  /** Messages about what is ignored. */
  readonly warnings: readonly string[];
}

export const NOTHING: Reading = { given: [], unknown: [], problems: [], warnings: [] };

/** Longest part of a text that a message repeats. */
const SHOWN_LENGTH_MAX = 200;

/** A text of the configuration, as a message repeats it: on one line, and not without end. */
export function shown(text: string): string {
  const short = text.length > SHOWN_LENGTH_MAX ? `${text.slice(0, SHOWN_LENGTH_MAX)}…` : text;
  return shownText(short);
}
