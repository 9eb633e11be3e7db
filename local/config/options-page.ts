import { commandLineName, environmentName } from './names.ts';
import type { OptionGroup, OptionSpec } from './option.ts';
import { OPTION_GROUPS } from './options.ts';

const INTRODUCTION = `# Options of a node

This page is made from the table of options (\`local/config/options.ts\`). Don't edit it: \`node local/config/write-page.ts\`
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
  names the nearest one that there is.
- Options marked *reload* change without a restart: edit the file, then \`POST /admin/reloadconfig\` or send SIGHUP.
- Secrets (*secret*) are never shown, neither in logs nor by \`/info/options\`.
`;

/** The documentation page of all options. */
export function optionsPage(groups: readonly OptionGroup[] = OPTION_GROUPS): string {
  return [INTRODUCTION, ...groups.map(({ title, options }) => section(title, Object.entries(options)))].join('\n');
}

function section(title: string, options: readonly (readonly [string, OptionSpec<unknown>])[]): string {
  const rows = options.map(([name, option]) => `| ${spellings(name, option)} | ${valueOf(option)} | ${option.fallbackText === '' ? '' : code(option.fallbackText)} | ${meaning(option)} |`);
  return [`## ${title}`, '', '| Option | Value | Default | Meaning |', '|---|---|---|---|', ...rows, ''].join('\n');
}

function spellings(name: string, option: OptionSpec<unknown>): string {
  if (option.isEnvironmentOnly) return code(environmentName(name));
  return [name, commandLineName(name), environmentName(name)].map(code).join('<br>');
}

function valueOf({ kind }: OptionSpec<unknown>): string {
  return kind.words === null ? kind.description : kind.words.map(code).join(', ');
}

function meaning({ description, deprecated, aliases, isSensitive, isReloadable, isEnvironmentOnly }: OptionSpec<unknown>): string {
  const marks = [isReloadable && '*reload*', isSensitive && '*secret*', isEnvironmentOnly && '*environment only*'].filter((mark) => mark !== false);
  return [
    `${description}.`,
    deprecated === null ? '' : `Deprecated: ${deprecated}.`,
    aliases.length === 0 ? '' : `Formerly ${aliases.map(code).join(', ')}.`,
    marks.join(', '),
  ].filter((part) => part !== '').join(' ').replaceAll('|', '\\|');
}

function code(text: string): string {
  return `\`${text}\``;
}
