import type { Command } from '../cli/command.ts';
import { table, unbroken, wrapHelp } from '../cli/help.ts';
import type { Colours } from '../../infra/runtime/io.ts';
import { valueText } from './config.ts';
import type { Config } from './config.ts';
import type { Setting } from '../../infra/runtime/config/merge.ts';
import { commandLineName, environmentName } from '../../infra/runtime/config/option-names.ts';
import type { OptionGroup, OptionSpec } from '../../infra/runtime/config/option.ts';
import { OPTION_GROUPS } from '../../infra/runtime/config/options.ts';
import { shown } from '../../infra/runtime/config/sources.ts';

const INTRODUCTION = `# Options of a node

This page is made from the table of options (\`infra/runtime/config/options.ts\`). Don't edit it: \`node local/config/write-page.ts\`
writes it anew, and a test fails while it is out of date.

An option has one name in three spellings: \`NodePort: 2114\` in the configuration file, \`SERVER_NODE_PORT=2114\` in the
environment, \`--node-port 2114\` behind \`skua start\`. The command line wins over the environment, that over the file, and
that over the defaults. \`skua start --what-if\` shows what would be in force, and where each value comes from;
\`skua start --help\` shows the options on a terminal.

The file is YAML, at \`/etc/skua/skua.conf\` or where \`--config\` says:

\`\`\`yaml
Db: /var/lib/skua
NodeIp: 192.0.2.10
CertificateFile: /etc/skua/node.crt
CertificatePrivateKeyFile: /etc/skua/node.key
\`\`\`

- On the command line \`--name value\` and \`--name=value\` are the same, \`--name\` alone switches on and \`--name-\` off. Case, dashes
  and underscores in names don't count there and in the environment; in the file only case does not.
- Booleans are \`true\` and \`false\`. Sizes are bytes, also with a unit: \`64MiB\`.
- An option that is not known, or has a value that it can't have, keeps the node from starting (exit code 2); the message
  names the nearest one that there is. Variables \`SERVER_...\` that are near to no option may be meant for another program, or be set by an
  orchestrator for a service named \`server\`: they are a warning. So are all \`EVENTSTORE_...\` and \`KURRENTDB_...\`, with their
  counterpart ([Move here and back](../guide/move-here.md)).
- Options marked *reload* change without a restart: edit the file, then \`POST /admin/reloadconfig\` or send SIGHUP.
- Secrets (*secret*) are never shown, neither in logs nor by \`/info/options\`. An empty password for \`admin\` or \`ops\` is refused.
`;

/** The documentation page of all options. */
export function optionsPage(groups: readonly OptionGroup[] = OPTION_GROUPS): string {
  return [INTRODUCTION, ...groups.map(({ title, options }) => section(title, Object.entries(options)))].join('\n');
}

function section(title: string, options: readonly (readonly [string, OptionSpec<unknown>])[]): string {
  const rows = options.map(
    ([name, option]) =>
      `| ${spellings(name, option)} | ${valueOf(option)} | ${option.fallbackText === '' ? '' : code(option.fallbackText)} | ${meaning(option)} |`,
  );
  return [`## ${title}`, '', '| Option | Value | Default | Meaning |', '|---|---|---|---|', ...rows, ''].join('\n');
}

function spellings(name: string, option: OptionSpec<unknown>): string {
  if (option.isEnvironmentOnly) return code(environmentName(name));
  return [name, commandLineName(name), environmentName(name)].map(code).join('<br>');
}

function valueOf({ kind }: OptionSpec<unknown>): string {
  return kind.words === null ? kind.description : kind.words.map(code).join(', ');
}

function meaning({
  description,
  deprecated,
  aliases,
  isSensitive,
  isReloadable,
  isEnvironmentOnly,
}: OptionSpec<unknown>): string {
  const marks = [
    isReloadable && '*reload*',
    isSensitive && '*secret*',
    isEnvironmentOnly && '*environment only*',
  ].filter((mark) => mark !== false);
  return [
    `${description}.`,
    deprecated === null ? '' : `Deprecated: ${deprecated}.`,
    aliases.length === 0 ? '' : `Formerly ${aliases.map(code).join(', ')}.`,
    marks.join(', '),
  ]
    .filter((part) => part !== '')
    .join(' ')
    .replaceAll('|', '\\|');
}

function code(text: string): string {
  return `\`${text}\``;
}

/**
 * `skua start --help`: every option in its group, with default and possible values. Environment-only ones come last.
 */
export function startHelp({ summary, details, examples }: Command, colours: Colours): string {
  const lines = [`${summary}.`, ''];
  if (details !== undefined) lines.push(...wrapHelp(details), '');
  lines.push(colours.bold('Usage'), '  skua start [options]', '');
  for (const { title, options } of OPTION_GROUPS) {
    const rows = Object.entries(options)
      .filter(([, option]) => !option.isEnvironmentOnly)
      .map(([name, option]) => rowOf(commandLineName(name), option));
    if (rows.length > 0) lines.push(colours.bold(title), ...table(rows), '');
  }
  const variables = OPTION_GROUPS.flatMap(({ options }) => Object.entries(options)).filter(
    ([, option]) => option.isEnvironmentOnly,
  );
  lines.push(
    colours.bold('Environment only'),
    ...table(variables.map(([name, option]) => [environmentName(name), describe(option)])),
    '',
  );
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

/**
 * The options in force in two parts, given ones and defaults, groups and names in alphabetical order, each with its
 * value and its source. A secret is masked where there is one.
 */
export function dumpLines({ settings }: Config): readonly string[] {
  const all = [...settings.values()];
  return [
    ...part(
      'MODIFIED OPTIONS',
      all.filter(({ source }) => source !== '<DEFAULT>'),
    ),
    '',
    ...part(
      'DEFAULT OPTIONS',
      all.filter(({ source }) => source === '<DEFAULT>'),
    ),
  ];
}

function part(title: string, settings: readonly Setting[]): string[] {
  const lines = [`${title}:`];
  if (settings.length === 0) lines.push('    (none)');
  for (const group of [...new Set(settings.map((each) => each.group))].toSorted()) {
    lines.push(`    ${group}:`);
    const rows = settings
      .filter((each) => each.group === group)
      .map((each) => [spacedName(each.name), each] as const)
      .toSorted(([a], [b]) => (a < b ? -1 : 1));
    const width = Math.max(...rows.map(([name]) => name.length)) + 2;
    for (const [name, setting] of rows)
      lines.push(`        ${`${name}:`.padEnd(width)}${shown(shownValue(setting))} (${setting.source})`);
  }
  return lines;
}

/** `MaxAppendSize` -> `MAX APPEND SIZE`. */
function spacedName(name: string): string {
  return commandLineName(name).slice(2).replaceAll('-', ' ').toUpperCase();
}

function shownValue(setting: Setting): string {
  // Where nothing was given there is no secret: nothing, or a default that everybody can read.
  const hasSecret = setting.source !== '<DEFAULT>' && setting.option.kind.show(setting.value) !== '';
  const text = hasSecret ? valueText(setting) : setting.option.kind.show(setting.value);
  return text === '' ? '<empty>' : text;
}
