import { signal, useSignal } from '@preact/signals';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import { mayUse } from '../api/page-session.ts';
import { goTo } from '../lib/router.ts';
import { Dialog } from '../parts/dialog.tsx';
import { Icon } from '../parts/icon.tsx';
import type { IconName } from '../parts/icon.tsx';
import { VIEWS } from '../views.ts';
import { isReachable, isSystem, viewOf } from '../views/streams/name-search.ts';
import { useStreams } from '../views/streams/use-streams.ts';
import type { Wanted } from '../views/streams/use-streams.ts';

export const paletteIsOpen = signal(false);

interface Choice {
  readonly label: string;
  readonly hint: string;
  readonly icon: IconName;
  readonly path: string;
}

/** Streams that are looked for; the view of streams finds more. */
const STREAMS_MAX = 8;

function viewsFor(text: string): Choice[] {
  const wanted = text.toLowerCase();
  return VIEWS.filter(
    (view) =>
      view.isInMenu !== false && mayUse(view.needs) && `${view.title} ${view.group}`.toLowerCase().includes(wanted),
  ).map(({ title, group, icon, path }) => ({ label: title, hint: group, icon, path }));
}

/** The streams that the search of the view of streams finds, that search itself, and the stream of the very name. */
function useStreamChoices(text: string): { readonly choices: readonly Choice[]; readonly isLooking: boolean } {
  const maySearch = text !== '' && mayUse('operators');
  const wanted = useMemo(
    (): Wanted | null => (maySearch ? { recent: 'written', search: text, withSystem: isSystem(text) } : null),
    [text, maySearch],
  );
  const { streams, isLooking } = useStreams(wanted, STREAMS_MAX);
  const found = maySearch ? streams.filter(({ stream }) => isReachable(stream)).slice(0, STREAMS_MAX) : [];
  const choices: Choice[] = found.map(({ stream }) => ({
    label: stream,
    hint: 'Stream',
    icon: 'streams',
    path: viewOf(stream),
  }));
  if (isReachable(text) && !found.some(({ stream }) => stream === text))
    choices.push({ label: text, hint: 'Open by this name', icon: 'streams', path: viewOf(text) });
  if (maySearch)
    choices.push({
      label: text,
      hint: 'Search in Streams',
      icon: 'search',
      path: `/streams?${new URLSearchParams({ q: text, ...(isSystem(text) && { system: 'true' }) }).toString()}`,
    });
  return { choices, isLooking: maySearch && isLooking };
}

/** Ctrl+K: to any view or stream without a hand on the mouse. */
export function Palette() {
  const isOpen = paletteIsOpen.value;
  return (
    <Dialog title="Go to" isOpen={isOpen} onClose={() => (paletteIsOpen.value = false)} size="palette">
      {isOpen && <Chooser />}
    </Dialog>
  );
}

function Chooser() {
  const text = useSignal('');
  const at = useSignal(0);
  const list = useRef<HTMLUListElement>(null);
  const wanted = text.value.trim();
  const streams = useStreamChoices(wanted);
  const choices = [...viewsFor(wanted), ...streams.choices];
  const chosen = Math.min(at.value, choices.length - 1);
  useEffect(() => list.current?.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' }), [chosen]);

  const take = (choice: Choice | undefined) => {
    if (choice === undefined) return;
    paletteIsOpen.value = false;
    goTo(choice.path);
  };
  const pressed = (event: KeyboardEvent) => {
    const moves: Readonly<Record<string, number>> = {
      ArrowDown: chosen + 1,
      ArrowUp: chosen - 1,
      Home: 0,
      End: choices.length - 1,
    };
    const to = moves[event.key];
    if (event.key === 'Enter') take(choices[chosen]);
    else if (to === undefined || ((event.key === 'Home' || event.key === 'End') && text.value !== '')) return;
    else at.value = choices.length === 0 ? 0 : (to + choices.length) % choices.length;
    event.preventDefault();
  };
  return (
    <div class="palette">
      <div class="palette-input">
        <Icon name="search" />
        <input
          type="text"
          role="combobox"
          aria-label="View or stream"
          aria-expanded="true"
          aria-controls="palette-list"
          aria-autocomplete="list"
          aria-activedescendant={chosen >= 0 ? `palette-${chosen}` : undefined}
          placeholder="View or stream name"
          autocomplete="off"
          spellcheck={false}
          autofocus
          value={text.value}
          onKeyDown={pressed}
          onInput={(event) => {
            text.value = event.currentTarget.value;
            at.value = 0;
          }}
        />
        <kbd class="only-wide">Esc</kbd>
        <button
          type="button"
          class="icon-button only-narrow"
          aria-label="Close"
          onClick={() => (paletteIsOpen.value = false)}
        >
          <Icon name="close" />
        </button>
      </div>
      <ul id="palette-list" role="listbox" aria-label="Matches" ref={list}>
        {choices.map((choice, i) => (
          <li
            key={choice.path}
            id={`palette-${i}`}
            role="option"
            aria-selected={i === chosen}
            onClick={() => take(choice)}
            onMouseMove={() => (at.value = i)}
          >
            <Icon name={choice.icon} />
            <span class="truncate grow" title={choice.label}>
              {choice.label}
            </span>
            <span class="small faint nowrap">{choice.hint}</span>
          </li>
        ))}
      </ul>
      {streams.isLooking && (
        <p class="palette-none muted" role="status">
          Searching the streams…
        </p>
      )}
      {choices.length === 0 && <p class="palette-none muted">No view matches.</p>}
    </div>
  );
}
