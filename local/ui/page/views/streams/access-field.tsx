import { useState } from 'preact/hooks';
import { Field, Select } from '../../parts/form.tsx';
import type { Values } from '../../parts/form.tsx';
import { RIGHTS } from './stream-metadata.ts';
import type { Right } from './stream-metadata.ts';

/** The users who have one right: what most lists say is a choice, and anything else a list of names. */

type Choice = 'default' | 'everybody' | 'operators' | 'nobody' | 'named';

const CHOICES: readonly { readonly value: Choice; readonly label: string }[] = [
  { value: 'default', label: "The node's default" },
  { value: 'everybody', label: 'Every logged-in user' },
  { value: 'operators', label: 'Operators ($ops)' },
  { value: 'nobody', label: 'Administrators only' },
  { value: 'named', label: 'Users and groups…' },
];

function choiceOf(names: readonly string[] | undefined): Choice {
  if (names === undefined) return 'default';
  if (names.length === 0 || isOnly(names, '$admins')) return 'nobody';
  return isOnly(names, '$all') ? 'everybody' : isOnly(names, '$ops') ? 'operators' : 'named';
}

function isOnly(names: readonly string[], name: string): boolean {
  return names.length === 1 && names[0] === name;
}

export function AccessField({
  right,
  names,
}: {
  readonly right: Right;
  readonly names: readonly string[] | undefined;
}) {
  const [choice, setChoice] = useState(choiceOf(names));
  const { label } = RIGHTS[right];
  return (
    <div class="access-field">
      <Select
        name={`${right}-choice`}
        label={label}
        value={choice}
        options={CHOICES}
        onChange={(value) => setChoice(value as Choice)}
      />
      {choice === 'named' && (
        <Field
          name={`${right}-names`}
          label={`Users and groups: ${label.toLowerCase()}`}
          about="One name per line, such as kim, $ops."
          rows={2}
          isMono
          isRequired
          spellcheck={false}
          value={choiceOf(names) === 'named' ? names!.join('\n') : ''}
        />
      )}
      {/* What was there stays in its own spelling as long as it means the same. */}
      {choice === 'nobody' && choiceOf(names) === 'nobody' && (
        <input type="hidden" name={`${right}-names`} value={names!.join('\n')} />
      )}
    </div>
  );
}

/** The names that are let in; undefined where the default counts. */
export function accessIn(values: Values, right: Right): readonly string[] | undefined {
  switch (values[`${right}-choice`] as Choice) {
    case 'default':
      return undefined;
    case 'everybody':
      return ['$all'];
    case 'operators':
      return ['$ops'];
    default:
      return (values[`${right}-names`] ?? '')
        .split('\n')
        .map((name) => name.trim())
        .filter((name) => name !== '');
  }
}
