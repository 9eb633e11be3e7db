import type { ComponentChildren } from 'preact';
import { connection } from '../api/connection-state.ts';
import type { Polled } from '../api/polled.ts';
import { ErrorState, Notice } from './empty-state.tsx';

/** The shape of what is to come. */
export function Skeleton({ lines = 3 }: { readonly lines?: number }) {
  return (
    <div class="skeleton" aria-busy="true">
      <span class="hidden-visually">Loading</span>
      {Array.from({ length: lines }, (_, i) => (
        <div key={i} />
      ))}
    </div>
  );
}

/**
 * What is polled: its shape at first, an error alone where nothing was ever known; else the last that was known, which
 * says more, below why there is nothing newer. That the node is away says the banner.
 */
export function Loading<T>({
  polled,
  what,
  lines,
  children,
}: {
  readonly polled: Polled<T>;
  readonly what?: string;
  readonly lines?: number;
  readonly children: (data: T) => ComponentChildren;
}) {
  const data = polled.data.value;
  const error = polled.error.value;
  if (data !== null)
    return (
      <>
        {connection.value === 'ok' && error !== null && !error.isAway && (
          <Notice tone="warn" title={`${what ?? 'This'} may be out of date`}>
            <span class="break">{error.message}</span>
          </Notice>
        )}
        {children(data)}
      </>
    );
  if (error !== null)
    return <ErrorState error={error} onRetry={() => void polled.refresh()} {...(what !== undefined && { what })} />;
  return <Skeleton {...(lines !== undefined && { lines })} />;
}
