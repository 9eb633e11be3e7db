import type { Signal } from '@preact/signals';
import { mayUse, session } from '../api/page-session.ts';
import { hrefOf, place } from '../lib/router.ts';
import { Icon } from '../parts/icon.tsx';
import { GROUPS, menuViewAt, VIEWS } from '../views.ts';

/** The views by groups. Those that the user may not see stand there with a lock: what there is should be no riddle. */
export function Sidebar({ isOpen }: { readonly isOpen: Signal<boolean> }) {
  const here = menuViewAt(place.value.path);
  const who = session.value;
  return (
    <>
      <div class="scrim" onClick={() => (isOpen.value = false)} />
      <nav class="sidebar" id="menu" aria-label="Views">
        <a class="brand" href={hrefOf('/')} aria-label="Skua, to the overview">
          <Logo />
          <span>Skua</span>
        </a>
        {GROUPS.map((group) => {
          const views = VIEWS.filter((view) => view.group === group && view.isInMenu !== false);
          if (views.length === 0) return null;
          const id = `group-${group}`;
          return (
            <div key={group} role="group" aria-labelledby={id}>
              <h2 id={id} class="group">
                {group}
              </h2>
              <ul>
                {views.map((view) => {
                  const isLocked = who !== null && !mayUse(view.needs, who);
                  return (
                    <li key={view.path}>
                      <a
                        href={hrefOf(view.path)}
                        aria-current={view === here ? 'page' : undefined}
                        class={isLocked ? 'locked' : ''}
                      >
                        <Icon name={view.icon} />
                        <span class="truncate grow">{view.title}</span>
                        {isLocked && (
                          <>
                            <Icon name="lock" size={14} class="faint" />
                            <span class="hidden-visually">, locked</span>
                          </>
                        )}
                      </a>
                    </li>
                  );
                })}
              </ul>
            </div>
          );
        })}
      </nav>
    </>
  );
}

export function Logo() {
  return (
    <svg class="logo" width="26" height="26" viewBox="0 0 32 32" aria-hidden="true" focusable="false">
      <rect width="32" height="32" rx="8" />
      <path d="M5 17.5c4.2-.4 7-2.4 9.2-5.8 1.3 2.3 3 3.3 5.3 3.3 3 0 5-1.5 7.5-4.5-.6 6-3.2 9.8-7.6 10.9L16 25l-.8-3.4C11 21.2 7.7 20 5 17.5z" />
    </svg>
  );
}
