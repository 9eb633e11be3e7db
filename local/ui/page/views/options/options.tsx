import { useMemo } from 'preact/hooks';
import { mayUse } from '../../api/page-session.ts';
import { usePolled } from '../../api/polled.ts';
import { countText } from '../../lib/format.ts';
import { setQuery } from '../../lib/router.ts';
import { Badge } from '../../parts/badge.tsx';
import { Button } from '../../parts/button.tsx';
import { Card, ViewHead } from '../../parts/card.tsx';
import { Dotted } from '../../parts/dotted.tsx';
import { EmptyState } from '../../parts/empty-state.tsx';
import { Loading } from '../../parts/loading.tsx';
import { breakable } from '../../parts/name.tsx';
import { SearchField } from '../../parts/search-field.tsx';
import type { ViewProps } from '../../views.ts';
import { Indexes } from './indexes.tsx';
import { isDefault, sentenceOf, shownValue, sourceText } from './option-text.ts';
import type { OptionView } from '../../../../../handlers/documents/node.ts';

const EVERY_MS = 60_000;
const WHICH = [
  { name: '', label: 'All' },
  { name: 'set', label: 'Set' },
  { name: 'old', label: 'Deprecated' },
] as const;

/** Every option of the node: its value, where that comes from, and what it does. */
export default function Options({ query }: ViewProps) {
  const polled = usePolled<readonly OptionView[]>('/info/options', EVERY_MS);
  return (
    <>
      <ViewHead
        title="Options"
        about="The options this node runs with. Set them on the command line, in the environment or in the configuration file."
      />
      {mayUse('administrators') ? (
        <Indexes />
      ) : (
        <Card title="Attribute indexes">
          <p class="muted">Administrators alone see and switch them.</p>
        </Card>
      )}
      <Loading polled={polled} what="The options" lines={12}>
        {(options) => <Known options={options} query={query} />}
      </Loading>
    </>
  );
}

function Known({ options, query }: { readonly options: readonly OptionView[]; readonly query: URLSearchParams }) {
  const text = query.get('q') ?? '';
  const which = query.get('only') ?? '';
  const groups = useMemo(() => {
    const wanted = text.trim().toLowerCase();
    const found = options.filter(
      (option) =>
        `${option.name} ${option.description} ${option.value} ${option.commandLine ?? ''} ${option.environment ?? ''}`
          .toLowerCase()
          .includes(wanted) &&
        (which === '' || (which === 'set' ? !isDefault(option) : option.deprecationMessage !== null)),
    );
    return Map.groupBy(found, ({ group }) => group);
  }, [options, text, which]);
  const count = [...groups.values()].reduce((sum, members) => sum + members.length, 0);
  return (
    <>
      <div class="toolbar">
        <SearchField
          label="Find options"
          placeholder="Name, value or description"
          value={text}
          onInput={(value) => setQuery({ q: value })}
        />
        <div class="segments" role="group" aria-label="Filter options">
          {WHICH.map(({ name, label }) => (
            <Button key={name} kind="quiet" isSmall isPressed={which === name} onClick={() => setQuery({ only: name })}>
              {label}
            </Button>
          ))}
        </div>
        <span class="push faint small" role="status">
          {countText(count, 'option')}
        </span>
      </div>
      {count === 0 && (
        <Card>
          <EmptyState
            icon="search"
            title="No options match"
            action={<Button onClick={() => setQuery({ q: null, only: null })}>Show all</Button>}
          />
        </Card>
      )}
      {[...groups].map(([group, members]) => (
        <Card key={group} title={group} note={countText(members.length, 'option')} isFlush>
          <ul class="options">
            {members.map((option) => (
              <Line key={option.name} option={option} />
            ))}
          </ul>
        </Card>
      ))}
    </>
  );
}

function Line({ option }: { readonly option: OptionView }) {
  const {
    name,
    description,
    deprecationMessage,
    defaultValue,
    isReloadable,
    commandLine,
    environment,
    possibleValues,
  } = option;
  const isSet = !isDefault(option);
  return (
    <li class={isSet ? 'set' : ''}>
      <div class="option-name">
        <code class="break">{breakable(name)}</code>
        {isReloadable === true && (
          <Badge title="Takes effect when the configuration is reloaded; no restart needed.">reloadable</Badge>
        )}
        {deprecationMessage !== null && <Badge tone="warn">deprecated</Badge>}
      </div>
      <div class="option-value">
        <code class="break">{breakable(shownValue(option))}</code>
        <span class="small faint">
          <Dotted
            items={[
              sourceText(option),
              isSet && defaultValue != null && defaultValue !== '' ? (
                <>
                  default <code>{defaultValue}</code>
                </>
              ) : null,
            ]}
          />
        </span>
      </div>
      <div class="option-about">
        <p class="muted">
          {description}.
          {possibleValues !== null && possibleValues.length > 0 && ` One of ${possibleValues.join(', ')}.`}
        </p>
        {deprecationMessage !== null && <p class="small option-old">{sentenceOf(deprecationMessage)}</p>}
        {commandLine !== undefined && (
          <p class="small faint break">
            <Dotted
              items={[
                commandLine === null ? null : <code>{breakable(commandLine)}</code>,
                environment == null ? null : <code>{breakable(environment)}</code>,
              ]}
            />
          </p>
        )}
      </div>
    </li>
  );
}
