import type { ComponentChildren } from 'preact';

export type Tone = 'ok' | 'warn' | 'bad' | 'info' | 'plain' | 'accent';

/** One word about something: its colour never says more than the word. */
export function Badge({
  tone = 'plain',
  title,
  children,
}: {
  readonly tone?: Tone;
  readonly title?: string;
  readonly children: ComponentChildren;
}) {
  return (
    <span class={`badge ${tone}`} title={title}>
      {children}
    </span>
  );
}

/** A state in a row of a table: a dot and its word. `isLive`: something goes on there. */
export function Status({
  tone = 'plain',
  isLive = false,
  children,
}: {
  readonly tone?: Tone;
  readonly isLive?: boolean;
  readonly children: ComponentChildren;
}) {
  return (
    <span class="status">
      <span class={`dot ${tone}${isLive ? ' live' : ''}`} />
      {children}
    </span>
  );
}
