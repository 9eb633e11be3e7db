import { signal } from '@preact/signals';
import { post } from '../api/page-client.ts';
import { loadSession, session } from '../api/page-session.ts';
import { Button } from '../parts/button.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { Name } from '../parts/name.tsx';
import { Field, Form } from '../parts/form.tsx';
import { toast } from '../parts/toast.tsx';
import { Password, samePasswords } from '../views/users/user-dialogs.tsx';
import { userPath } from '../views/users/user-groups.ts';
import { tooManyText } from './too-many-failures.ts';

const isShown = signal(false);

export function askForPassword(): void {
  isShown.value = true;
}

/** A user changes the own password. All sessions of the user end with it, this one as well. */
export function OwnPassword() {
  const user = session.value?.user ?? null;
  const close = () => {
    isShown.value = false;
  };
  return (
    <Dialog title="Change password" isOpen={isShown.value && user !== null} onClose={close} size="small">
      {user !== null && (
        <Form
          validate={samePasswords}
          errorField={({ code }) => (code === 'wrong_password' || code === 'too_many_failures' ? 'current' : null)}
          errorText={(error) => {
            const { code, message } = error;
            if (code === 'wrong_password') return 'The current password is wrong.';
            return code === 'too_many_failures' ? tooManyText(error) : message;
          }}
          onSubmit={async (values) => {
            // A wrong password is no reason to ask for a login.
            await post(
              userPath(user, 'change-password'),
              { currentPassword: values['current'], newPassword: values['password'] },
              { canLogin: false },
            );
            close();
            toast('The password is changed. Log in with the new one.');
            await loadSession();
          }}
          buttons={(isBusy) => (
            <>
              <Button onClick={close}>Cancel</Button>
              <Button kind="primary" type="submit" isBusy={isBusy}>
                Change password
              </Button>
            </>
          )}
        >
          <p>
            This logs{' '}
            <strong class="break">
              <Name text={user} isWhole />
            </strong>{' '}
            out everywhere, here too.
          </p>
          <Field
            name="current"
            label="Current password"
            type="password"
            autocomplete="current-password"
            isRequired
            isFocused
          />
          <Password label="New password" />
        </Form>
      )}
    </Dialog>
  );
}
