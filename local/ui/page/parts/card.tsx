import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';

/** A part of a view under a heading. */
export function Card({
  title,
  actions,
  note,
  isFlush = false,
  children,
}: {
  readonly title?: ComponentChildren;
  readonly actions?: ComponentChildren;
  readonly note?: ComponentChildren;
  readonly isFlush?: boolean;
  readonly children: ComponentChildren;
}) {
  const id = useId();
  return (
    <section class={`card${isFlush ? ' flush' : ''}`} aria-labelledby={title === undefined ? undefined : id}>
      {(title !== undefined || actions !== undefined) && (
        <header class="card-head">
          {title !== undefined && <h2 id={id}>{title}</h2>}
          {note !== undefined && <span class="faint small">{note}</span>}
          {actions !== undefined && actions !== false && <div class="row card-actions">{actions}</div>}
        </header>
      )}
      <div class="card-body">{children}</div>
    </section>
  );
}

/** The heading of a view, with what can be done about the whole of it. */
export function ViewHead({
  title,
  about,
  actions,
  children,
}: {
  readonly title: ComponentChildren;
  readonly about?: ComponentChildren;
  readonly actions?: ComponentChildren;
  readonly children?: ComponentChildren;
}) {
  return (
    <header class="view-head">
      <div class="grow">
        <h1 class="break">
          {title}
          {children !== undefined && <span class="view-marks">{children}</span>}
        </h1>
        {about !== undefined && <p class="muted">{about}</p>}
      </div>
      {actions !== undefined && actions !== false && <div class="row wrap">{actions}</div>}
    </header>
  );
}
