import type { ComponentChildren } from 'preact';

/** Names and what they stand for. What is null is left out. */
export function Definitions({
  items,
  isWide = false,
}: {
  readonly items: readonly (readonly [ComponentChildren, ComponentChildren] | null)[];
  readonly isWide?: boolean;
}) {
  return (
    <dl class={`definitions${isWide ? ' wide' : ''}`}>
      {items.map(
        (item, i) =>
          item !== null && (
            <div key={i}>
              <dt>{item[0]}</dt>
              <dd>{item[1]}</dd>
            </div>
          ),
      )}
    </dl>
  );
}
