import { useEffect, useRef } from 'preact/hooks';
import { isLoginShown, login, refuseLogin, session } from '../api/page-session.ts';
import { announce } from '../lib/announce.ts';
import { Dialog } from '../parts/dialog.tsx';
import { Button } from '../parts/button.tsx';
import { Notice } from '../parts/empty-state.tsx';
import { Field, Form } from '../parts/form.tsx';
import { nodeName } from './node-name.ts';
import { Logo } from './sidebar.tsx';
import { tooManyText } from './too-many-failures.ts';

const TITLE = 'Log in';

/** In place of the whole page while it has no user: no view shows anything without one. */
export function LoginScreen() {
  const main = useRef<HTMLElement>(null);
  useEffect(() => {
    document.title = `${TITLE} · Skua`;
    announce(TITLE);
    main.current!.querySelector<HTMLElement>('[autofocus]')?.focus();
  }, []);
  return (
    <main class="login-screen" ref={main}>
      <section class="card login-card" aria-labelledby="login-title">
        <Logo />
        <h1 id="login-title">{TITLE}</h1>
        <LoginForm />
      </section>
    </main>
  );
}

/** In front of a view when the node refuses a request of the page: its session has ended. */
export function LoginDialog() {
  return (
    <Dialog title={TITLE} isOpen={isLoginShown.value} onClose={refuseLogin} size="small">
      <LoginForm onCancel={refuseLogin} />
    </Dialog>
  );
}

function LoginForm({ onCancel }: { readonly onCancel?: () => void }) {
  return (
    <>
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
        errorText={(error) => {
          const { code, message } = error;
          if (code === 'not_authenticated' || code === 'wrong_password') return 'User name or password is wrong.';
          return code === 'too_many_failures' ? tooManyText(error) : message;
        }}
        buttons={(isBusy) => (
          <>
            {onCancel !== undefined && <Button onClick={onCancel}>Not now</Button>}
            <Button kind="primary" type="submit" isBusy={isBusy}>
              Log in
            </Button>
          </>
        )}
      >
        <Field name="user" label="User name" autocomplete="username" isRequired isFocused spellcheck={false} />
        <Field name="password" label="Password" type="password" autocomplete="current-password" isRequired />
      </Form>
    </>
  );
}
