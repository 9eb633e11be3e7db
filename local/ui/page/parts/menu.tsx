import type { ComponentChildren } from 'preact';
import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { Icon } from './icon.tsx';
import type { IconName } from './icon.tsx';

export interface MenuItem {
  readonly label: string;
  readonly icon?: IconName;
  readonly isDanger?: boolean;
  readonly isDisabled?: boolean;
  /** Given: one of several, of which one is chosen. */
  readonly isChecked?: boolean;
  readonly onSelect: () => void;
}

export interface MenuProps {
  readonly label: string;
  /** What the button shows; three dots without. */
  readonly trigger?: ComponentChildren;
  readonly heading?: ComponentChildren;
  readonly items: readonly MenuItem[];
}

const GAP_PX = 4;

/**
 * In front of everything, so that no table cuts it: below its button, and to the left of where that ends, or above it
 * and to the right of where it begins where the window ends before.
 */
function show(list: HTMLElement, button: DOMRect): void {
  list.showPopover();
  const { offsetWidth: width, offsetHeight: height } = list;
  const below = button.bottom + GAP_PX;
  const isAbove = below + height > innerHeight && button.top - GAP_PX - height > 0;
  list.style.left = `${button.right - width < 0 ? button.left : button.right - width}px`;
  list.style.top = `${isAbove ? button.top - GAP_PX - height : below}px`;
}

/** A button that opens a list of things to do. Arrows move within it, letters jump, Escape closes. */
export function Menu({ label, trigger, heading, items }: MenuProps) {
  const [isOpen, setOpen] = useState(false);
  const root = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const id = useId();
  // Before the next key is pressed.
  useLayoutEffect(() => {
    if (!isOpen) return;
    const inside = root.current!;
    show(inside.querySelector<HTMLElement>('.menu-list')!, inside.getBoundingClientRect());
    const itemsOf = () => [...inside.querySelectorAll<HTMLElement>('[role^=menuitem]:not(:disabled)')];
    (inside.querySelector<HTMLElement>('[aria-checked=true]') ?? itemsOf()[0])?.focus({ preventScroll: true });
    // It stays where it is, and its button does not.
    const moved = () => setOpen(false);
    const elsewhere = (event: Event) => {
      if (!inside.contains(event.target as Node)) setOpen(false);
    };
    const pressed = (event: KeyboardEvent) => {
      const all = itemsOf();
      const at = all.indexOf(document.activeElement as HTMLElement);
      const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
      if (event.key === 'Escape' || event.key === 'Tab') {
        if (event.key === 'Escape') event.preventDefault();
        event.stopPropagation();
        setOpen(false);
        button.current?.focus();
      } else if (to !== undefined) {
        event.preventDefault();
        all[(to + all.length) % all.length]?.focus();
      } else if (event.key.length === 1 && !event.ctrlKey && !event.metaKey) {
        [...all.slice(at + 1), ...all]
          .find((item) => item.textContent?.toLowerCase().startsWith(event.key.toLowerCase()) === true)
          ?.focus();
      }
    };
    addEventListener('pointerdown', elsewhere, true);
    addEventListener('scroll', moved, true);
    addEventListener('resize', moved);
    inside.addEventListener('keydown', pressed);
    return () => {
      removeEventListener('pointerdown', elsewhere, true);
      removeEventListener('scroll', moved, true);
      removeEventListener('resize', moved);
      inside.removeEventListener('keydown', pressed);
    };
  }, [isOpen]);
  return (
    <div class="menu" ref={root}>
      <button
        type="button"
        ref={button}
        class="icon-button"
        aria-haspopup="menu"
        aria-expanded={isOpen}
        aria-controls={isOpen ? id : undefined}
        aria-label={label}
        title={label}
        onClick={() => setOpen(!isOpen)}
      >
        {trigger ?? <Icon name="more" />}
      </button>
      {isOpen && (
        <div class="menu-list" popover="manual">
          {heading !== undefined && <div class="menu-heading">{heading}</div>}
          <div role="menu" id={id} aria-label={label}>
            {items.map((item) => (
              <button
                type="button"
                key={item.label}
                role={item.isChecked === undefined ? 'menuitem' : 'menuitemradio'}
                aria-checked={item.isChecked}
                tabIndex={-1}
                disabled={item.isDisabled}
                class={item.isDanger === true ? 'danger' : ''}
                onClick={() => {
                  setOpen(false);
                  button.current?.focus();
                  item.onSelect();
                }}
              >
                {item.icon !== undefined && <Icon name={item.icon} size={16} />}
                <span class="grow">{item.label}</span>
                {item.isChecked === true && <Icon name="check" size={16} />}
              </button>
            ))}
          </div>
        </div>
      )}
    </div>
  );
}
