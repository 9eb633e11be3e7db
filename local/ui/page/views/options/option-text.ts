import type { OptionView } from '../../../../../handlers/documents/node.ts';

const DEFAULT = '<DEFAULT>';

export function isDefault({ configurationSource }: OptionView): boolean {
  return configurationSource === DEFAULT;
}

export function sourceText(option: OptionView): string {
  if (isDefault(option)) return 'default';
  return (
    { Yaml: 'from the file', 'Environment Variables': 'from the environment', 'Command Line': 'from the command line' }[
      option.configurationSource
    ] ?? option.configurationSource
  );
}

/** What a table of options has as a part of a sentence, as one. */
export function sentenceOf(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1).replace(/\.$/, '')}.`;
}

/** The node tells no secret, nor whether there is one: where nothing was set, it is what is there by default. */
export function shownValue(option: OptionView): string {
  const value = option.isSecret !== true ? option.value : isDefault(option) ? option.defaultValue : '••••••••';
  return value == null || value === '' ? '(empty)' : value;
}
