import type { ComponentChildren } from 'preact';

/** Short texts side by side, with a dot between two of a line, and none where a line begins or ends. */
export function Dotted({ items }: { readonly items: readonly (ComponentChildren | null)[] }) {
  return (
    <span class="dotted">
      {items
        .filter((item) => item !== null)
        .map((item, i) => (
          <span key={i}>
            {i > 0 && ' '}
            {item}
          </span>
        ))}
    </span>
  );
}
