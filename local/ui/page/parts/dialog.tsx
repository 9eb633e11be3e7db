import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';
import { Icon } from './icon.tsx';
import { breakable } from './name.tsx';
import { Toasts } from './toast.tsx';

/** The dialogs that are open, the one in front last. */
const opened = signal<readonly string[]>([]);
export const isDialogOpen = () => opened.value.length > 0;

export interface DialogProps {
  readonly title: string;
  readonly isOpen: boolean;
  /** By the key Escape, the cross, or a click beside it. */
  readonly onClose: () => void;
  readonly size?: 'small' | 'medium' | 'large' | 'palette';
  readonly children: ComponentChildren;
}

/**
 * In front of everything else: the browser keeps the focus in it, and gives it back. Its content is there only while it
 * is open.
 */
export function Dialog({ title, isOpen, onClose, size = 'medium', children }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const dialog = element.current!;
    if (!isOpen) {
      if (dialog.open) dialog.close();
      return;
    }
    if (dialog.open) return;
    dialog.showModal();
    dialog.querySelector<HTMLElement>('[autofocus]')?.focus();
  }, [isOpen]);
  useEffect(() => {
    if (!isOpen) return;
    opened.value = [...opened.peek(), id];
    return () => (opened.value = opened.peek().filter((one) => one !== id));
  }, [isOpen]);
  const isPalette = size === 'palette';
  return (
    <dialog
      ref={element}
      class={`dialog ${size}`}
      aria-labelledby={isPalette ? undefined : id}
      aria-label={isPalette ? title : undefined}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onMouseDown={(event) => {
        if (event.target === element.current) onClose();
      }}
    >
      {isOpen && (
        <div class="dialog-inside">
          {!isPalette && (
            <header class="dialog-head">
              <h2 id={id} title={title}>
                {breakable(title)}
              </h2>
              <button type="button" class="icon-button" aria-label="Close" onClick={onClose}>
                <Icon name="close" />
              </button>
            </header>
          )}
          <div class="dialog-body">{children}</div>
        </div>
      )}
      {isOpen && <Toasts isHere={opened.value.at(-1) === id} />}
    </dialog>
  );
}
