import { isLoginShown, login, refuseLogin, session } from '../api/page-session.ts';
import { Dialog } from '../parts/dialog.tsx';
import { Button } from '../parts/button.tsx';
import { Notice } from '../parts/empty-state.tsx';
import { Field, Form } from '../parts/form.tsx';
import { nodeName } from './node-name.ts';

/** Shown when the user asks for it, or when the node refuses a request of the page. */
export function Login() {
  return (
    <Dialog title="Log in" isOpen={isLoginShown.value} onClose={refuseLogin} size="small">
      <p class="muted">
        As a user of <strong class="break">{nodeName.value}</strong>.
      </p>
      {session.value?.isEncrypted === false &&
        location.hostname !== 'localhost' &&
        !location.hostname.startsWith('127.') && (
          <Notice tone="warn">
            The connection is not encrypted: anyone on the network path can read the password.
          </Notice>
        )}
      <Form
        onSubmit={async (values) => {
          await login(values['user']!.trim(), values['password']!);
        }}
        errorText={({ code, message, retryAfterMs }) => {
          if (code === 'not_authenticated' || code === 'wrong_password') return 'User name or password is wrong.';
          return code === 'too_many_failures'
            ? `Too many failed attempts. Try again in ${Math.ceil((retryAfterMs ?? 60_000) / 1_000)} seconds.`
            : message;
        }}
        buttons={(isBusy) => (
          <>
            <Button onClick={refuseLogin}>Not now</Button>
            <Button kind="primary" type="submit" isBusy={isBusy}>
              Log in
            </Button>
          </>
        )}
      >
        <Field name="user" label="User name" autocomplete="username" isRequired isFocused spellcheck={false} />
        <Field name="password" label="Password" type="password" autocomplete="current-password" isRequired />
      </Form>
    </Dialog>
  );
}
