import { useMemo } from 'preact/hooks';
import { usePolled } from '../../api/polled.ts';
import { numberText, shortText } from '../../lib/format.ts';
import { goTo, hrefOf, pathTo, setQuery } from '../../lib/router.ts';
import { Num } from '../../parts/amount.tsx';
import { Status } from '../../parts/badge.tsx';
import { Button } from '../../parts/button.tsx';
import { Card, ViewHead } from '../../parts/card.tsx';
import { Command } from '../../parts/command.tsx';
import { CopyButton } from '../../parts/copy-button.tsx';
import { EmptyState } from '../../parts/empty-state.tsx';
import { Loading } from '../../parts/loading.tsx';
import { Rate } from '../../parts/rate.tsx';
import { SearchField } from '../../parts/search-field.tsx';
import { Stat } from '../../parts/stat.tsx';
import { Name } from '../../parts/name.tsx';
import { Table } from '../../parts/table.tsx';
import type { Column } from '../../parts/table.tsx';
import type { ViewProps } from '../../views.ts';
import { ConnectorForm } from './connector-form.tsx';
import { CountedElsewhere } from './counted-elsewhere.tsx';
import { callsOf, countOf, perSecondOf, publicUrl, stateOf, useCalls } from './connector-list.ts';
import type { AllCalls, Calls, Connector, ConnectorList } from './connector-list.ts';
import { schemeName } from './scheme-fields.ts';

const CONNECTORS_EVERY_MS = 5_000;

/** A connector with its calls. */
interface Row {
  readonly connector: Connector;
  readonly calls: Calls;
}

/** Connectors that take the webhook calls of other systems. */
export default function Webhooks({ query }: ViewProps) {
  const connectors = usePolled<ConnectorList>('/connectors?includeSettings=true', CONNECTORS_EVERY_MS);
  const calls = useCalls();
  const isAbsent = connectors.error.value?.status === 404;
  // Then the button stands where the list would be.
  const isEmpty = connectors.data.value?.items.length === 0;
  if (query.get('new') !== null && !isAbsent) {
    return (
      <>
        <ViewHead title="New connector" about="Receives the webhook calls of one sender and writes each as an event." />
        <ConnectorForm
          connector={null}
          onDone={() => void connectors.refresh()}
          onCancel={() => setQuery({ new: null })}
        />
      </>
    );
  }
  const add = () => setQuery({ new: '1' });
  return (
    <>
      <ViewHead
        title="Webhooks"
        about="Connectors receive calls from other systems, check their signatures and write each as an event."
        actions={
          !isAbsent &&
          !isEmpty && (
            <Button kind="primary" icon="plus" onClick={add}>
              New connector
            </Button>
          )
        }
      />
      {isAbsent ? (
        <Card>
          <EmptyState icon="webhook" title="Connectors are switched off on this node">
            Start the node with this option to enable them.
            <Command text="--connectors-enabled true" label="Copy the option" />
          </EmptyState>
        </Card>
      ) : (
        <Loading polled={connectors} what="The list of connectors">
          {({ items }) => (
            <Connectors items={items} calls={calls.data.value} search={query.get('q') ?? ''} onAdd={add} />
          )}
        </Loading>
      )}
    </>
  );
}

function Connectors({
  items,
  calls,
  search,
  onAdd,
}: {
  readonly items: readonly Connector[];
  readonly calls: AllCalls | null;
  readonly search: string;
  readonly onAdd: () => void;
}) {
  const rows = useMemo(() => {
    const wanted = search.toLowerCase();
    return items
      .filter(({ connectorId, name }) => `${connectorId}\n${name}`.toLowerCase().includes(wanted))
      .map((connector): Row => ({ connector, calls: callsOf(calls, connector.connectorId) }));
  }, [items, calls, search]);
  if (items.length === 0) {
    return (
      <Card>
        <EmptyState
          icon="webhook"
          title="No connectors yet"
          action={
            <Button kind="primary" icon="plus" onClick={onAdd}>
              New connector
            </Button>
          }
        >
          A connector has an address of its own. Give it to a system that sends webhooks, such as a shop, a bank or a
          code host; a short script decides which stream each call goes to.
        </EmptyState>
      </Card>
    );
  }
  const running = items.filter((connector) => stateOf(connector).isRunning).length;
  const counted = calls?.connectors ?? [];
  const sumOf = (one: (each: (typeof counted)[number]) => number) => counted.reduce((sum, each) => sum + one(each), 0);
  const refused = sumOf((each) => countOf(each, 'refused'));
  return (
    <>
      <CountedElsewhere />
      <div class="tiles">
        <Stat label="Connectors" value={<Num value={items.length} />} note={`${running} running`} />
        <Stat label="Calls" value={<Rate value={perSecondOf(calls)} />} note="of all connectors" />
        <Stat
          label="Accepted"
          value={shortText(sumOf((each) => countOf(each, 'taken')))}
          note="since the node started"
        />
        <Stat
          label="Refused"
          value={shortText(refused)}
          note="since the node started"
          {...(refused > 0 && { tone: 'warn' as const })}
        />
      </div>
      <Card
        isFlush
        title="Connectors"
        actions={<SearchField label="Find a connector" value={search} onInput={(q) => setQuery({ q })} />}
      >
        <Table
          label="Connectors"
          columns={COLUMNS}
          rows={rows}
          keyOf={({ connector }) => connector.connectorId}
          onOpen={({ connector }) => goTo(pathTo('webhooks', connector.connectorId))}
          empty={
            <EmptyState
              icon="search"
              title="No connectors match"
              action={<Button onClick={() => setQuery({ q: null })}>Show all</Button>}
            />
          }
        />
      </Card>
    </>
  );
}

const COLUMNS: readonly Column<Row>[] = [
  {
    name: 'name',
    title: 'Connector',
    width: '36%',
    isName: true,
    render: ({ connector: { connectorId, name }, calls }) => (
      <>
        <span class="truncate" title={name === connectorId ? name : `${name} (${connectorId})`}>
          <a href={hrefOf(pathTo('webhooks', connectorId))}>
            <Name text={name} />
          </a>
          {name !== connectorId && <span class="faint only-wide"> {connectorId}</span>}
        </span>
        {name !== connectorId && (
          <span class="only-narrow truncate faint small" title={connectorId}>
            <Name text={connectorId} />
          </span>
        )}
        {countOf(calls, 'refused') > 0 && (
          <span class="only-narrow faint small">{numberText(countOf(calls, 'refused'))} refused</span>
        )}
      </>
    ),
    sortBy: ({ connector }) => connector.name,
  },
  {
    name: 'state',
    title: 'State',
    width: '8rem',
    render: ({ connector }) => <ConnectorStatus connector={connector} />,
    sortBy: ({ connector }) => stateOf(connector).word,
  },
  {
    name: 'signature',
    title: 'Signature',
    width: '11rem',
    isMinor: true,
    render: ({ connector: { settings } }) => <SignatureName name={settings['signature:scheme']} />,
  },
  {
    name: 'rate',
    title: 'Calls',
    width: '6rem',
    align: 'end',
    render: ({ calls }) => <Rate value={calls.callsPerSecond} />,
    sortBy: ({ calls }) => calls.callsPerSecond,
  },
  {
    name: 'taken',
    title: 'Accepted',
    width: '6rem',
    align: 'end',
    isMinor: true,
    render: ({ calls }) => <Num value={countOf(calls, 'taken')} />,
    sortBy: ({ calls }) => countOf(calls, 'taken'),
  },
  {
    name: 'refused',
    title: 'Refused',
    width: '6rem',
    align: 'end',
    isMinor: true,
    render: ({ calls }) => <Num value={countOf(calls, 'refused')} />,
    sortBy: ({ calls }) => countOf(calls, 'refused'),
  },
  {
    name: 'address',
    title: 'Address',
    width: '6rem',
    align: 'end',
    isMinor: true,
    render: ({ connector: { connectorId } }) => (
      <CopyButton text={publicUrl(connectorId)} label={`Copy the address of ${connectorId}`} />
    ),
  },
];

export function ConnectorStatus({ connector }: { readonly connector: Connector }) {
  const { word, tone } = stateOf(connector);
  return <Status tone={tone}>{word}</Status>;
}

function SignatureName({ name }: { readonly name: string | undefined }) {
  return name === undefined ? <span class="faint">none</span> : <>{schemeName(name)}</>;
}
