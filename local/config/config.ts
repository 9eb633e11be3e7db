import type { OptionView } from '../../handlers/documents/node.ts';
import { commandLineName, environmentName } from '../../infra/runtime/config/option-names.ts';
import type { Setting } from '../../infra/runtime/config/merge.ts';
import type { OptionName, Values } from '../../infra/runtime/config/options.ts';

/** What is shown instead of a secret, by the node also of an empty one. */
export const MASK = '********';

/** An option whose value differs between two configurations. Secrets are masked. */
interface OptionChange {
  readonly name: OptionName;
  readonly from: string;
  readonly to: string;
  /** Whether a reload can put it into force; otherwise it needs a restart. */
  readonly isReloadable: boolean;
}

/** The options of a node as they are in force. */
export interface Config {
  readonly values: Values;
  /** Every option, grouped, for `/info/options`. */
  readonly views: readonly OptionView[];
  /** To be logged at the start. */
  readonly warnings: readonly string[];
  /** The configuration file that was read; null where the default one is not there. */
  readonly file: string | null;
  /** Whether the option was given anywhere, even with its default value. */
  given(name: OptionName): boolean;
  /** How messages name the option: as it was given, else as on the command line. */
  spelling(name: OptionName): string;
  /** Every option with where its value comes from. */
  readonly settings: ReadonlyMap<string, Setting>;
  /**
   * The configuration with the file as it is now. Throws a ConfigError that says what is wrong; `file` names the file.
   */
  reread(): Config;
  /** What another configuration has different. */
  diff(other: Config): readonly OptionChange[];
}

export function valueText({ option, value }: Setting): string {
  return option.isSensitive ? MASK : option.kind.show(value);
}

export function viewOf(setting: Setting): OptionView {
  const { name, group, option, source } = setting;
  return {
    name,
    group,
    description: option.description,
    value: valueText(setting),
    configurationSource: source,
    deprecationMessage: option.deprecated,
    possibleValues: option.kind.words,
    schema: { type: option.kind.schema },
    defaultValue: option.fallbackText,
    isSecret: option.isSensitive,
    isReloadable: option.isReloadable,
    commandLine: option.isEnvironmentOnly ? null : commandLineName(name),
    environment: environmentName(name),
  };
}

export function diffOf(before: Config, after: Config): readonly OptionChange[] {
  return [...before.settings.values()].flatMap((from) => {
    const to = after.settings.get(from.name)!;
    if (from.option.kind.show(from.value) === to.option.kind.show(to.value)) return [];
    return [
      {
        name: from.name as OptionName,
        from: valueText(from),
        to: valueText(to),
        isReloadable: from.option.isReloadable,
      },
    ];
  });
}
