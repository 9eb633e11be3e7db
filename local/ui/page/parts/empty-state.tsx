import type { ComponentChildren } from 'preact';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import { returns } from '../api/connection-state.ts';
import type { ApiError } from '../api/problem-text.ts';
import { Button } from './button.tsx';
import { Icon } from './icon.tsx';
import type { IconName } from './icon.tsx';

/** Where nothing is: why, and what to do next. */
export function EmptyState({
  icon = 'info',
  title,
  isWhole = false,
  action,
  children,
}: {
  readonly icon?: IconName;
  readonly title: string;
  /** It stands in place of a view, whose heading this is. */
  readonly isWhole?: boolean;
  readonly action?: ComponentChildren;
  readonly children?: ComponentChildren;
}) {
  return (
    <div class="empty">
      <span class="empty-icon">
        <Icon name={icon} size={24} />
      </span>
      {isWhole ? <h1 class="empty-title">{title}</h1> : <p class="empty-title">{title}</p>}
      {children !== undefined && <div class="muted prose">{children}</div>}
      {action}
    </div>
  );
}

/** What happened, in the node's words, and a way on; when the node was away and is back, it is tried again at once. */
export function ErrorState({
  error,
  what = 'This',
  isWhole = false,
  onRetry,
}: {
  readonly error: ApiError;
  readonly what?: string;
  readonly isWhole?: boolean;
  readonly onRetry?: () => void;
}) {
  const back = returns.value;
  const seen = useRef(back);
  useEffect(() => {
    if (back !== seen.current && error.isPassing) onRetry?.();
    seen.current = back;
  }, [back]);
  return (
    <div role="alert">
      <EmptyState
        isWhole={isWhole}
        icon={error.isPassing ? 'clock' : 'error'}
        title={`${what} can't be shown`}
        action={
          onRetry !== undefined && (
            <Button icon="refresh" onClick={onRetry}>
              Try again
            </Button>
          )
        }
      >
        <span class="break">
          {error.message}
          {error.hint !== null && ` ${error.hint}`}
        </span>
        {error.status > 0 && (
          <>
            <br />
            <code class="faint">{error.code}</code>
          </>
        )}
      </EmptyState>
    </div>
  );
}

/** Why something failed that nobody sends again by itself. That the node is away is no longer so once it is back. */
export function Failure({
  error,
  title,
  text = error.message,
}: {
  readonly error: ApiError;
  readonly title?: string;
  readonly text?: string;
}) {
  const back = returns.value;
  const since = useMemo(() => back, [error]);
  return error.isAway && back !== since ? null : (
    <Notice tone="bad" title={title}>
      {text}
    </Notice>
  );
}

/** Something to be done about, within a view. */
export function Notice({
  tone = 'info',
  title,
  action,
  children,
}: {
  readonly tone?: 'info' | 'warn' | 'bad' | 'ok';
  readonly title?: ComponentChildren;
  readonly action?: ComponentChildren;
  readonly children?: ComponentChildren;
}) {
  return (
    <div class={`notice ${tone}`}>
      <Icon name={tone === 'info' ? 'info' : tone === 'ok' ? 'check' : tone === 'warn' ? 'warning' : 'error'} />
      <div class="grow prose">
        {title !== undefined && <strong>{title}</strong>}
        {children !== undefined && <div>{children}</div>}
      </div>
      {action}
    </div>
  );
}
