import type { ComponentChildren } from 'preact';
import { hrefOf } from '../lib/router.ts';
import { Icon } from './icon.tsx';
import type { IconName } from './icon.tsx';

export interface ButtonProps {
  readonly children?: ComponentChildren;
  /** `danger`: it takes something away. `quiet`: without a frame, within rows. */
  readonly kind?: 'plain' | 'primary' | 'danger' | 'quiet';
  readonly type?: 'button' | 'submit';
  readonly icon?: IconName;
  /** Needed where there is only an icon. */
  readonly label?: string;
  readonly isDisabled?: boolean;
  /** Why it can't be used, shown with the pointer over it. */
  readonly title?: string | undefined;
  /** What it began is under way. */
  readonly isBusy?: boolean;
  readonly isSmall?: boolean;
  readonly isPressed?: boolean;
  /** A path of the page: then it is a link that looks like a button. */
  readonly href?: string;
  readonly onClick?: (event: MouseEvent) => void;
}

export function Button({
  children,
  kind = 'plain',
  type = 'button',
  icon,
  label,
  isDisabled = false,
  title,
  isBusy = false,
  isSmall = false,
  isPressed,
  href,
  onClick,
}: ButtonProps) {
  const isBare = children === undefined;
  const className = `button ${kind}${isSmall ? ' small' : ''}${isBare ? ' bare' : ''}`;
  const inner = (
    <>
      {isBusy ? <span class="spinner" /> : icon !== undefined && <Icon name={icon} size={16} />}
      {children}
    </>
  );
  if (href !== undefined)
    return (
      <a class={className} href={hrefOf(href)} aria-label={label} title={title ?? (isBare ? label : undefined)}>
        {inner}
      </a>
    );
  return (
    <button
      type={type}
      class={className}
      disabled={isDisabled}
      aria-label={label}
      title={title ?? (isBare ? label : undefined)}
      aria-busy={isBusy || undefined}
      aria-pressed={isPressed}
      onClick={(event) => {
        // A second press while the first is under way would do it twice; the button keeps the focus, which a disabled
        // one would lose.
        if (isBusy) event.preventDefault();
        else onClick?.(event);
      }}
    >
      {inner}
    </button>
  );
}
