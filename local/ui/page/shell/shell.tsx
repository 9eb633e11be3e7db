import { useEffect, useRef } from 'preact/hooks';
import { useSignal } from '@preact/signals';
import { connection, returns, startingUp } from '../api/connection-state.ts';
import { loadSession, mayUse, session, sessionFailure } from '../api/page-session.ts';
import { announcement } from '../lib/announce.ts';
import { percentText } from '../lib/format.ts';
import { place } from '../lib/router.ts';
import { ConfirmHost } from '../parts/confirm.tsx';
import { isDialogOpen } from '../parts/dialog.tsx';
import { ErrorState } from '../parts/empty-state.tsx';
import { Icon } from '../parts/icon.tsx';
import { Toasts } from '../parts/toast.tsx';
import { Header } from './header.tsx';
import { LoginDialog, LoginScreen } from './login.tsx';
import { OwnPassword } from './own-password.tsx';
import { Palette, paletteIsOpen } from './palette.tsx';
import { Sidebar } from './sidebar.tsx';
import { Stage } from './stage.tsx';

/** The whole page. Until it is known whether a login is needed it shows nothing, so that a login comes first. */
export function Shell() {
  // After a restart it may be another session, or none.
  const back = returns.value;
  useEffect(() => {
    if (back > 0) void loadSession();
  }, [back]);

  return (
    <>
      {session.value === null ? <Waiting /> : mayUse('authenticated') ? <Frame /> : <Entrance />}
      <Toasts isHere={!isDialogOpen()} />
      <div class="hidden-visually" role="status" aria-live="polite">
        {announcement}
      </div>
    </>
  );
}

function Waiting() {
  const failure = sessionFailure.value;
  return (
    <main>
      <Banner />
      <div class="stage" aria-busy={failure === null}>
        {failure === null ? (
          <span class="hidden-visually">Loading</span>
        ) : (
          <ErrorState isWhole error={failure} what="The page" onRetry={() => void loadSession()} />
        )}
      </div>
    </main>
  );
}

function Entrance() {
  return (
    <>
      <Banner />
      <LoginScreen />
    </>
  );
}

/** What stands around every view. */
function Frame() {
  const isMenuOpen = useSignal(false);
  const { path } = place.value;
  const main = useRef<HTMLElement>(null);
  const isFirst = useRef(true);

  // A user who has gone to another view has it read out, and goes on from its beginning.
  useEffect(() => {
    isMenuOpen.value = false;
    if (isFirst.current) {
      isFirst.current = false;
      return;
    }
    main.current?.focus({ preventScroll: true });
    scrollTo(0, 0);
  }, [path]);

  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey && event.key.toLowerCase() === 'k') {
        event.preventDefault();
        paletteIsOpen.value = !paletteIsOpen.peek();
      } else if (event.key === 'Escape') isMenuOpen.value = false;
    };
    addEventListener('keydown', pressed);
    return () => removeEventListener('keydown', pressed);
  }, []);

  return (
    <div class={`shell${isMenuOpen.value ? ' menu-open' : ''}`}>
      <a
        class="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          main.current?.focus();
        }}
      >
        Skip to content
      </a>
      <Sidebar isOpen={isMenuOpen} />
      <div class="frame">
        <Header isMenuOpen={isMenuOpen} />
        <Banner />
        <main id="main" ref={main} tabIndex={-1}>
          <Stage />
        </main>
      </div>
      <LoginDialog />
      <OwnPassword />
      <Palette />
      <ConfirmHost />
    </div>
  );
}

/** Says that the node is away, for as long as it is. */
function Banner() {
  if (connection.value === 'ok') return null;
  const isStarting = connection.value === 'starting';
  const work = startingUp.value;
  return (
    <div class={`banner ${isStarting ? 'info' : 'bad'}`} role="alert">
      <Icon name={isStarting ? 'clock' : 'warning'} />
      {isStarting ? (
        <span>
          The node is starting
          {work === null ? '' : `: ${work.phase}${work.done === null ? '' : `, ${percentText(work.done)}`}`}. This page
          continues when it is ready.
        </span>
      ) : (
        <span>The node is not responding; retrying. What is shown may be out of date.</span>
      )}
    </div>
  );
}
