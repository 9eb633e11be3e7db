import { useState } from 'preact/hooks';
import { setQuery } from '../../lib/router.ts';
import { Badge } from '../../parts/badge.tsx';
import { Button } from '../../parts/button.tsx';
import { Name } from '../../parts/name.tsx';

/**
 * What events are asked for by: the node reads those that meet all conditions, by its indexes where it has them. They
 * stand in the address of the view under the names that the node knows them by.
 */

const KINDS = {
  category: 'Category',
  eventType: 'Type',
  correlation: 'Correlation',
  tag: 'Tag',
} as const;
type Kind = keyof typeof KINDS;
const EXAMPLES: Readonly<Record<Kind, string>> = {
  category: 'such as order',
  eventType: 'such as order-placed',
  correlation: 'an id',
  tag: 'such as order:4711',
};
const NAMES = Object.keys(KINDS) as readonly Kind[];
/** An event has one of these: another one takes its place. Of several types any will do, and tags are all wanted. */
const SINGLE: readonly Kind[] = ['category', 'correlation'];

interface Condition {
  readonly kind: Kind;
  readonly value: string;
}

export function conditionsIn(query: URLSearchParams): readonly Condition[] {
  return NAMES.flatMap((kind) => {
    const values = [...new Set(query.getAll(kind))].filter((value) => value !== '');
    return (SINGLE.includes(kind) ? values.slice(-1) : values).map((value) => ({ kind, value }));
  });
}

export function queryOf(conditions: readonly Condition[]): Record<string, readonly string[]> {
  const query: Record<string, readonly string[]> = {};
  for (const kind of NAMES) {
    const values = conditions.filter((one) => one.kind === kind).map(({ value }) => value);
    if (values.length > 0) query[kind] = values;
  }
  return query;
}

/** The view of all events that meet one condition. */
export function viewBy(kind: Kind, value: string): string {
  return `/all?${new URLSearchParams({ [kind]: value })}`;
}

function show(conditions: readonly Condition[]): void {
  const none = Object.fromEntries(NAMES.map((kind) => [kind, null]));
  setQuery({ ...none, ...queryOf(conditions), from: null });
}

export function ConditionBar({ conditions }: { readonly conditions: readonly Condition[] }) {
  const [kind, setKind] = useState<Kind>('category');
  const [text, setText] = useState('');
  const add = () => {
    const value = text.trim();
    if (value === '') return;
    const others = conditions.filter((one) => one.kind !== kind || (one.value !== value && !SINGLE.includes(kind)));
    show([...others, { kind, value }]);
    setText('');
  };
  return (
    <form
      class="toolbar table-toolbar"
      role="search"
      aria-label="Conditions"
      onSubmit={(event) => {
        event.preventDefault();
        add();
      }}
    >
      <select
        class="plain small"
        aria-label="Find by"
        value={kind}
        onChange={(event) => setKind(event.currentTarget.value as Kind)}
      >
        {NAMES.map((name) => (
          <option key={name} value={name}>
            {KINDS[name]}
          </option>
        ))}
      </select>
      <input
        class="plain small"
        aria-label={KINDS[kind]}
        placeholder={EXAMPLES[kind]}
        value={text}
        autocomplete="off"
        spellcheck={false}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <Button isSmall type="submit" icon="plus" label="Add condition">
        <span class="only-wide">Add condition</span>
      </Button>
      {conditions.map((one) => (
        <Badge key={`${one.kind} ${one.value}`} tone="accent" title={one.value}>
          {KINDS[one.kind]}:{' '}
          <span class="truncate">
            <Name text={one.value} />
          </span>
          <Button
            kind="quiet"
            isSmall
            icon="close"
            label={`Remove ${KINDS[one.kind].toLowerCase()} ${one.value}`}
            onClick={() => show(conditions.filter((other) => other !== one))}
          />
        </Badge>
      ))}
    </form>
  );
}
