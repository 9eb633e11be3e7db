import { useState } from 'preact/hooks';
import { Button } from '../../parts/button.tsx';
import { Field } from '../../parts/form.tsx';
import { MASK } from './settings-form.ts';

/** A secret that was given once and is never shown: it stays, or another one is given in its place. */
export function SecretField({
  name,
  label,
  about,
  isStored,
  isOptional = false,
}: {
  readonly name: string;
  readonly label: string;
  readonly about: string;
  readonly isStored: boolean;
  readonly isOptional?: boolean;
}) {
  const [state, setState] = useState<'kept' | 'given' | 'none'>(isStored ? 'kept' : isOptional ? 'none' : 'given');
  if (state === 'given') {
    return (
      <div class="stack tight">
        <Field name={name} label={label} type="password" autocomplete="new-password" isRequired about={about} />
        {(isStored || isOptional) && (
          <div class="row">
            <Button isSmall kind="quiet" onClick={() => setState(isStored ? 'kept' : 'none')}>
              {isStored ? 'Keep the stored one' : 'None'}
            </Button>
          </div>
        )}
      </div>
    );
  }
  return (
    <div class="field">
      <span class="field-name">{label}</span>
      <div class="row secret-kept">
        <span class="grow muted">{state === 'kept' ? 'Stored; it is never shown' : 'None'}</span>
        <Button isSmall label={`${state === 'kept' ? 'Replace' : 'Add'}: ${label}`} onClick={() => setState('given')}>
          {state === 'kept' ? 'Replace' : 'Add'}
        </Button>
        {state === 'kept' && isOptional && (
          <Button isSmall label={`Remove: ${label}`} onClick={() => setState('none')}>
            Remove
          </Button>
        )}
      </div>
      <input type="hidden" name={name} value={state === 'kept' ? MASK : ''} />
      <p class="field-about">{about}</p>
    </div>
  );
}
