import { useState } from 'preact/hooks';
import { post, put } from '../../api/page-client.ts';
import type { ApiError } from '../../api/problem-text.ts';
import { Button } from '../../parts/button.tsx';
import { CopyButton } from '../../parts/copy-button.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { Name } from '../../parts/name.tsx';
import { Field, Form, Toggle } from '../../parts/form.tsx';
import type { Complaints, Values } from '../../parts/form.tsx';
import { groupsOf, KNOWN_GROUPS, newPassword, userPath } from './user-groups.ts';
import type { UserDocument } from '../../../../../handlers/documents/users.ts';

interface Ending {
  readonly onClose: () => void;
  readonly onDone: (text: string) => Promise<void>;
}

export function NewUser({ isOpen, onClose, onDone }: { readonly isOpen: boolean } & Ending) {
  return (
    <Dialog title="New user" isOpen={isOpen} onClose={onClose}>
      <Form
        validate={samePasswords}
        errorField={fieldOf}
        onSubmit={async (values) => {
          const loginName = values['loginName']!.trim();
          await post('/users', {
            loginName,
            fullName: values['fullName']!.trim(),
            groups: chosenGroups(values),
            password: values['password'],
          });
          await onDone(`${loginName} is created.`);
        }}
        buttons={(isBusy) => (
          <>
            <Button onClick={onClose}>Cancel</Button>
            <Button kind="primary" type="submit" isBusy={isBusy}>
              Create user
            </Button>
          </>
        )}
      >
        <Field name="loginName" label="User name" isRequired isFocused spellcheck={false} />
        <Field name="fullName" label="Full name" />
        <Groups groups={[]} />
        <Password />
      </Form>
    </Dialog>
  );
}

export function EditUser({ user, onClose, onDone }: { readonly user: UserDocument | null } & Ending) {
  return (
    <Dialog title={`Edit ${user?.loginName ?? ''}`} isOpen={user !== null} onClose={onClose}>
      {user !== null && (
        <Form
          errorField={fieldOf}
          onSubmit={async (values) => {
            await put(userPath(user.loginName), { fullName: values['fullName']!.trim(), groups: chosenGroups(values) });
            await onDone(`${user.loginName} is updated.`);
          }}
          buttons={(isBusy) => (
            <>
              <Button onClick={onClose}>Cancel</Button>
              <Button kind="primary" type="submit" isBusy={isBusy}>
                Save
              </Button>
            </>
          )}
        >
          <Field name="fullName" label="Full name" value={user.fullName ?? ''} isFocused />
          <Groups groups={user.groups} />
        </Form>
      )}
    </Dialog>
  );
}

export function ResetPassword({ user, onClose, onDone }: { readonly user: UserDocument | null } & Ending) {
  return (
    <Dialog title="Reset password" isOpen={user !== null} onClose={onClose} size="small">
      {user !== null && (
        <Form
          validate={samePasswords}
          errorField={fieldOf}
          onSubmit={async (values) => {
            await post(userPath(user.loginName, 'reset-password'), { newPassword: values['password'] });
            await onDone(`${user.loginName} has a new password.`);
          }}
          buttons={(isBusy) => (
            <>
              <Button onClick={onClose}>Cancel</Button>
              <Button kind="primary" type="submit" isBusy={isBusy}>
                Set password
              </Button>
            </>
          )}
        >
          <p>
            The current password of{' '}
            <strong class="break">
              <Name text={user.loginName} isWhole />
            </strong>{' '}
            stops working immediately.
          </p>
          <Password label="New password" isFocused />
        </Form>
      )}
    </Dialog>
  );
}

function Groups({ groups }: { readonly groups: readonly string[] }) {
  return (
    <fieldset class="stack">
      <legend class="group-legend">Groups</legend>
      <div class="stack tight">
        {KNOWN_GROUPS.map(({ name, about }) => (
          <Toggle key={name} name={`group ${name}`} label={name} about={about} isOn={groups.includes(name)} />
        ))}
      </div>
      <Field
        name="groups"
        label="Other groups"
        value={groups.filter((group) => !KNOWN_GROUPS.some(({ name }) => name === group)).join(', ')}
        about="Comma-separated. Access lists of streams can name them."
        spellcheck={false}
      />
    </fieldset>
  );
}

function chosenGroups(values: Values): string[] {
  return [
    ...KNOWN_GROUPS.filter(({ name }) => values[`group ${name}`] === 'true').map(({ name }) => name),
    ...groupsOf(values['groups'] ?? ''),
  ];
}

/** A new password, typed twice, or made up: a made-up one is shown, since a person has to pass it on. */
export function Password({
  label = 'Password',
  isFocused = false,
}: {
  readonly label?: string;
  readonly isFocused?: boolean;
}) {
  const [made, setMade] = useState<string | null>(null);
  if (made !== null) {
    return (
      <div class="stack tight">
        <Field
          name="password"
          label={label}
          value={made}
          about="Copy it now: it can't be shown again."
          isRequired
          isMono
          spellcheck={false}
        />
        <div class="row">
          <CopyButton text={made} label="Copy the password" />
          <Button isSmall kind="quiet" onClick={() => setMade(null)}>
            Type one instead
          </Button>
        </div>
      </div>
    );
  }
  return (
    <div class="form">
      <Field
        name="password"
        label={label}
        type="password"
        autocomplete="new-password"
        isRequired
        isFocused={isFocused}
      />
      <Field name="again" label="Repeat password" type="password" autocomplete="new-password" isRequired />
      <div>
        <Button isSmall kind="quiet" icon="key" onClick={() => setMade(newPassword())}>
          Generate one
        </Button>
      </div>
    </div>
  );
}

export function samePasswords({ password, again }: Values): Complaints {
  const complaints: Record<string, string> = {};
  if (again !== undefined && again !== '' && password !== again) complaints['again'] = 'The passwords do not match.';
  return complaints;
}

/** At which field the node's complaint belongs. */
function fieldOf({ code }: ApiError): string | null {
  return code === 'user_exists' ? 'loginName' : null;
}
