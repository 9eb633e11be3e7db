import { useMemo, useState } from 'preact/hooks';
import { post } from '../../api/page-client.ts';
import { usePolled } from '../../api/polled.ts';
import { mayUse } from '../../api/page-session.ts';
import { countText, shortText } from '../../lib/format.ts';
import { goTo, hrefOf, pathTo, setQuery } from '../../lib/router.ts';
import { Num } from '../../parts/amount.tsx';
import { Button } from '../../parts/button.tsx';
import { Card, ViewHead } from '../../parts/card.tsx';
import { confirm } from '../../parts/confirm.tsx';
import { EmptyState } from '../../parts/empty-state.tsx';
import { Loading } from '../../parts/loading.tsx';
import { Menu } from '../../parts/menu.tsx';
import { SearchField } from '../../parts/search-field.tsx';
import { Stat } from '../../parts/stat.tsx';
import { Name } from '../../parts/name.tsx';
import { Table } from '../../parts/table.tsx';
import type { Column } from '../../parts/table.tsx';
import { toast } from '../../parts/toast.tsx';
import type { ViewProps } from '../../views.ts';
import { GroupDialog } from './group-dialog.tsx';
import { GroupStatus, LagText, Parked } from './group-line.tsx';
import { lagOf, statusOf } from './groups.ts';
import type { SummaryDocument } from '../../../../../handlers/documents/subscriptions.ts';

const EVERY_MS = 3_000;

/** Persistent subscriptions: all groups. */
export default function Subscriptions({ query }: ViewProps) {
  const groups = usePolled<readonly SummaryDocument[]>('/subscriptions', EVERY_MS);
  const [isCreating, setCreating] = useState(query.get('new') !== null);
  const mayChange = mayUse('operators');
  const isAbsent = groups.error.value?.status === 404;
  // Then the button stands where the list would be.
  const isEmpty = groups.data.value?.length === 0;
  return (
    <>
      <ViewHead
        title="Subscriptions"
        about="Persistent subscriptions: consumer groups that share the events of a stream."
        actions={
          mayChange &&
          !isAbsent &&
          !isEmpty && (
            <>
              <Button kind="primary" icon="plus" onClick={() => setCreating(true)}>
                New group
              </Button>
              <Menu
                label="More for all groups"
                items={[{ label: 'Restart all groups', icon: 'refresh', onSelect: () => void restartAll() }]}
              />
            </>
          )
        }
      />
      {isAbsent ? (
        <Card>
          <EmptyState icon="subscriptions" title="There are no persistent subscriptions on this node">
            They run on a single node with its own log, or on the leader of a cluster. Nodes that share a log in object
            storage have none.
          </EmptyState>
        </Card>
      ) : (
        <Loading polled={groups} what="The list of groups">
          {(list) => (
            <Groups
              list={list}
              search={query.get('q') ?? ''}
              isParkedOnly={query.get('parked') !== null}
              onCreate={mayChange ? () => setCreating(true) : null}
            />
          )}
        </Loading>
      )}
      <GroupDialog isOpen={isCreating} onClose={() => setCreating(false)} />
    </>
  );
}

async function restartAll(): Promise<void> {
  const isDone = await confirm({
    title: 'Restart all groups',
    action: 'Restart',
    text: 'Every group restarts from its checkpoint. Consumers are dropped and reconnect on their own; unacknowledged messages are sent again.',
    run: async () => {
      await post('/subscriptions/restart');
    },
  });
  if (isDone) toast('All groups restarted');
}

function Groups({
  list,
  search,
  isParkedOnly,
  onCreate,
}: {
  readonly list: readonly SummaryDocument[];
  readonly search: string;
  readonly isParkedOnly: boolean;
  readonly onCreate: (() => void) | null;
}) {
  const rows = useMemo(() => {
    const wanted = search.toLowerCase();
    return list.filter(
      ({ eventStreamId, groupName, parkedMessageCount }) =>
        (!isParkedOnly || parkedMessageCount > 0) && `${eventStreamId}\n${groupName}`.toLowerCase().includes(wanted),
    );
  }, [list, search, isParkedOnly]);
  const parked = list.reduce((sum, group) => sum + group.parkedMessageCount, 0);
  const withParked = list.filter(({ parkedMessageCount }) => parkedMessageCount > 0).length;
  if (list.length === 0) {
    return (
      <Card>
        <EmptyState
          icon="subscriptions"
          title="No groups yet"
          action={
            onCreate !== null && (
              <Button kind="primary" icon="plus" onClick={onCreate}>
                New group
              </Button>
            )
          }
        >
          A group is created for a stream. Any number of consumers connect to it over gRPC or HTTP, and each event goes
          to one of them. A group of the whole log, <code>$all</code>, is created over gRPC: “New group” shows how.
        </EmptyState>
      </Card>
    );
  }
  return (
    <>
      <div class="tiles">
        <Stat
          label="Groups"
          value={<Num value={list.length} />}
          note={`${countText(sum(list, 'connectionCount'), 'consumer')} connected`}
        />
        <Stat
          label="In flight"
          value={<Num value={sum(list, 'totalInFlightMessages')} />}
          note="sent, not yet acknowledged"
        />
        <Stat label="Sent" value={`${shortText(sum(list, 'averageItemsPerSecond'))}/s`} note="by all groups" />
        <Stat
          label="Parked"
          value={<Num value={parked} />}
          note={parked === 0 ? 'nothing to review' : `in ${withParked} of ${list.length} groups`}
          {...(parked > 0 && { tone: 'warn' as const })}
        />
      </div>
      <Card
        isFlush
        title="Groups"
        actions={
          <>
            <SearchField label="Find a group or stream" value={search} onInput={(q) => setQuery({ q })} />
            <Button
              isPressed={isParkedOnly}
              title="Only groups with parked messages"
              onClick={() => setQuery({ parked: isParkedOnly ? null : '1' })}
            >
              Parked
            </Button>
          </>
        }
      >
        <Table
          label="Groups"
          columns={COLUMNS}
          rows={rows}
          keyOf={keyOf}
          onOpen={({ eventStreamId, groupName }) => goTo(pathTo('subscriptions', eventStreamId, groupName))}
          sort={{ name: 'stream', isDown: false }}
          empty={
            <EmptyState
              icon="search"
              title="No groups match"
              action={<Button onClick={() => setQuery({ q: null, parked: null })}>Show all</Button>}
            />
          }
        />
      </Card>
    </>
  );
}

function sum(
  list: readonly SummaryDocument[],
  name: 'connectionCount' | 'totalInFlightMessages' | 'averageItemsPerSecond',
): number {
  return list.reduce((all, group) => all + group[name], 0);
}

function keyOf({ eventStreamId, groupName }: SummaryDocument): string {
  return `${eventStreamId}::${groupName}`;
}

const COLUMNS: readonly Column<SummaryDocument>[] = [
  {
    name: 'group',
    title: 'Group',
    width: '28%',
    isName: true,
    render: ({ eventStreamId, groupName }) => (
      <>
        <a class="truncate" href={hrefOf(pathTo('subscriptions', eventStreamId, groupName))} title={groupName}>
          <Name text={groupName} />
        </a>
        <span class="only-narrow truncate faint small" title={eventStreamId}>
          <Name text={eventStreamId} />
        </span>
      </>
    ),
    sortBy: ({ groupName }) => groupName,
  },
  {
    name: 'stream',
    title: 'Stream',
    width: '28%',
    isName: true,
    isMinor: true,
    render: ({ eventStreamId }) => (
      <span class="truncate" title={eventStreamId}>
        <Name text={eventStreamId} />
      </span>
    ),
    sortBy: ({ eventStreamId }) => eventStreamId,
  },
  {
    name: 'status',
    title: 'Status',
    width: '9rem',
    render: ({ status, connectionCount }) => <GroupStatus status={status} consumers={connectionCount} />,
    sortBy: ({ status, connectionCount }) => statusOf(status, connectionCount).word,
  },
  {
    name: 'consumers',
    title: 'Consumers',
    width: '7rem',
    align: 'end',
    isMinor: true,
    render: ({ connectionCount }) => <Num value={connectionCount} />,
    sortBy: ({ connectionCount }) => connectionCount,
  },
  {
    name: 'flight',
    title: 'In flight',
    width: '6rem',
    align: 'end',
    isMinor: true,
    render: ({ totalInFlightMessages }) => <Num value={totalInFlightMessages} />,
    sortBy: ({ totalInFlightMessages }) => totalInFlightMessages,
  },
  {
    name: 'rate',
    title: 'Sent',
    width: '6rem',
    align: 'end',
    isMinor: true,
    render: ({ averageItemsPerSecond }) => `${shortText(averageItemsPerSecond)}/s`,
    sortBy: ({ averageItemsPerSecond }) => averageItemsPerSecond,
  },
  {
    name: 'lag',
    title: 'Lag',
    width: '7rem',
    align: 'end',
    isMinor: true,
    render: (group) => <LagText lag={lagOf(group, group.startPosition)} />,
    sortBy: (group) => lagOf(group, group.startPosition)?.amount,
  },
  {
    name: 'parked',
    title: 'Parked',
    width: '6rem',
    align: 'end',
    render: ({ parkedMessageCount }) => <Parked count={parkedMessageCount} />,
    sortBy: ({ parkedMessageCount }) => parkedMessageCount,
  },
];
