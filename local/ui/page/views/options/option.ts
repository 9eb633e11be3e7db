/** An option, as `GET /info/options` tells it. */
export interface Option {
  readonly name: string;
  readonly description: string;
  readonly group: string;
  /** Stars for a secret. */
  readonly value: string;
  readonly possibleValues: readonly string[] | null;
  readonly configurationSource: string;
  readonly deprecationMessage: string | null;
  readonly schema: { readonly type: string };
  readonly defaultValue?: string | null;
  readonly isSecret?: boolean;
  readonly isReloadable?: boolean;
  readonly commandLine?: string;
  readonly environment?: string;
}

const DEFAULT = '<DEFAULT>';

export function isDefault({ configurationSource }: Option): boolean {
  return configurationSource === DEFAULT;
}

export function sourceText(option: Option): string {
  if (isDefault(option)) return 'default';
  return { Yaml: 'from the file', 'Environment Variables': 'from the environment', 'Command Line': 'from the command line' }[option.configurationSource] ?? option.configurationSource;
}

export function shownValue({ value, isSecret }: Option): string {
  if (value === '') return '(empty)';
  return isSecret === true ? '••••••••' : value;
}
