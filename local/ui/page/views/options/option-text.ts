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

export function shownValue({ value, isSecret }: OptionView): string {
  if (value === '') return '(empty)';
  return isSecret === true ? '••••••••' : value;
}
