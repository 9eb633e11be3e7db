import { Icon } from './icon.tsx';

/** Narrows what a view shows while it is typed. */
export function SearchField({
  label,
  value,
  placeholder = label,
  onInput,
}: {
  readonly label: string;
  readonly value: string;
  readonly placeholder?: string;
  readonly onInput: (value: string) => void;
}) {
  return (
    <span class="search">
      <Icon name="search" size={16} />
      <input
        type="search"
        aria-label={label}
        placeholder={placeholder}
        value={value}
        autocomplete="off"
        spellcheck={false}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
    </span>
  );
}
