import { valueText } from './config.ts';
import type { Config } from './config.ts';
import type { Setting } from './merge.ts';
import { commandLineName } from './names.ts';
import { shown } from './shown.ts';

/**
 * The options in force in two parts, given ones and defaults, groups and names in alphabetical order, each with its
 * value and its source (options-and-security.md section 1.5). Secrets are masked.
 */
export function dumpLines({ settings }: Config): readonly string[] {
  const all = [...settings.values()];
  return [
    ...part('MODIFIED OPTIONS', all.filter(({ source }) => source !== '<DEFAULT>')),
    '',
    ...part('DEFAULT OPTIONS', all.filter(({ source }) => source === '<DEFAULT>')),
  ];
}

function part(title: string, settings: readonly Setting[]): string[] {
  const lines = [`${title}:`];
  if (settings.length === 0) lines.push('    (none)');
  for (const group of [...new Set(settings.map((each) => each.group))].toSorted()) {
    lines.push(`    ${group}:`);
    const rows = settings.filter((each) => each.group === group).map((each) => [spacedName(each.name), each] as const).toSorted(([a], [b]) => (a < b ? -1 : 1));
    const width = Math.max(...rows.map(([name]) => name.length)) + 2;
    for (const [name, setting] of rows) lines.push(`        ${`${name}:`.padEnd(width)}${shown(shownValue(setting))} (${setting.source})`);
  }
  return lines;
}

/** `MaxAppendSize` -> `MAX APPEND SIZE`. */
function spacedName(name: string): string {
  return commandLineName(name).slice(2).replaceAll('-', ' ').toUpperCase();
}

function shownValue(setting: Setting): string {
  const text = valueText(setting);
  return text === '' ? '<empty>' : text;
}
