import type { ComponentChildren } from 'preact';
import { useRef } from 'preact/hooks';

export interface ChoiceOption<Name extends string> {
  readonly name: Name;
  readonly label: ComponentChildren;
}

/** One of a few, side by side. Arrows move between them. */
export function Choice<Name extends string>({
  label,
  options,
  value,
  onChange,
}: {
  readonly label: string;
  readonly options: readonly ChoiceOption<Name>[];
  readonly value: Name;
  readonly onChange: (name: Name) => void;
}) {
  const group = useRef<HTMLDivElement>(null);
  const pressed = (event: KeyboardEvent) => {
    const at = options.findIndex(({ name }) => name === value);
    const to = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const index = (to + options.length) % options.length;
    onChange(options[index]!.name);
    (group.current?.children[index] as HTMLElement | undefined)?.focus();
  };
  return (
    <div class="choice" role="radiogroup" aria-label={label} ref={group} onKeyDown={pressed}>
      {options.map((option) => (
        <button
          type="button"
          key={option.name}
          role="radio"
          aria-checked={option.name === value}
          tabIndex={option.name === value ? 0 : -1}
          onClick={() => onChange(option.name)}
        >
          {option.label}
        </button>
      ))}
    </div>
  );
}
