import type { ComponentChildren } from 'preact';
import { useId, useRef } from 'preact/hooks';

export interface Tab {
  readonly name: string;
  readonly label: ComponentChildren;
}

/** Several sides of one thing, of which one is shown. Arrows move between them. */
export function Tabs({
  label,
  tabs,
  current,
  onChange,
  children,
}: {
  readonly label: string;
  readonly tabs: readonly Tab[];
  readonly current: string;
  readonly onChange: (name: string) => void;
  readonly children: ComponentChildren;
}) {
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const pressed = (event: KeyboardEvent) => {
    const at = tabs.findIndex(({ name }) => name === current);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const index = (to + tabs.length) % tabs.length;
    onChange(tabs[index]!.name);
    (list.current?.children[index] as HTMLElement | undefined)?.focus();
  };
  return (
    <div class="tabs">
      <div class="tab-list" role="tablist" aria-label={label} ref={list} onKeyDown={pressed}>
        {tabs.map((tab) => (
          <button
            type="button"
            key={tab.name}
            role="tab"
            id={`${id}-${tab.name}`}
            aria-selected={tab.name === current}
            aria-controls={`${id}-panel`}
            tabIndex={tab.name === current ? 0 : -1}
            onClick={() => onChange(tab.name)}
          >
            {tab.label}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${current}`} tabIndex={0}>
        {children}
      </div>
    </div>
  );
}
