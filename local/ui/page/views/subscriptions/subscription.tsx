import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { del } from '../../api/page-client.ts';
import { usePolled } from '../../api/polled.ts';
import { mayUse } from '../../api/page-session.ts';
import { countText, durationText, numberText, shortText } from '../../lib/format.ts';
import { evenly, historyOf, record } from '../../lib/history.ts';
import type { LineNames } from '../../lib/joined.ts';
import { goTo, hrefOf, pathTo, setQuery } from '../../lib/router.ts';
import { Num } from '../../parts/amount.tsx';
import { Button } from '../../parts/button.tsx';
import { Card, ViewHead } from '../../parts/card.tsx';
import { Chart } from '../../parts/chart.tsx';
import { confirm } from '../../parts/confirm.tsx';
import { Definitions } from '../../parts/definitions.tsx';
import { EmptyState } from '../../parts/empty-state.tsx';
import { Loading } from '../../parts/loading.tsx';
import { Menu } from '../../parts/menu.tsx';
import { RangeChoice, useNodePast, usePast } from '../../parts/past.tsx';
import { Stat } from '../../parts/stat.tsx';
import { Name } from '../../parts/name.tsx';
import { Table } from '../../parts/table.tsx';
import type { Column } from '../../parts/table.tsx';
import { Tabs } from '../../parts/tabs.tsx';
import { toast } from '../../parts/toast.tsx';
import type { ViewProps } from '../../views.ts';
import { GroupDialog, strategyText } from './group-dialog.tsx';
import { GroupBadge, LagText } from './group-line.tsx';
import { ALL, groupPath, LAG_UNITS, lagOf } from './groups.ts';
import type { DetailsDocument } from '../../../../../handlers/documents/subscriptions.ts';
import { ParkedMessages } from './parked.tsx';
import { ReplayDialog } from './replay-dialog.tsx';
import { ResetDialog } from './reset-dialog.tsx';

const EVERY_MS = 2_000;
/** By the names of the node's history. */
const LINES: LineNames = { rate: 'sentPerSecond', lag: 'lag', flight: 'inFlight' };
type Open = 'edit' | 'reset' | 'replay';

/** One group: what it does, its readers, and what it has parked. */
export default function Subscription({ params, query }: ViewProps) {
  const stream = params['stream']!;
  const group = params['group']!;
  const path = groupPath(stream, group);
  const details = usePolled<DetailsDocument>(`${path}/info`, EVERY_MS);
  const [open, setOpen] = useState<Open | null>(null);
  const tab = query.get('tab') ?? 'overview';
  const known = details.data.value;
  useMeasured(`subscription ${path}`, known, details.atMs.value);
  const close = () => setOpen(null);
  const changed = () => void details.refresh();
  if (details.error.value?.status === 404) return <Gone stream={stream} group={group} />;
  return (
    <>
      <ViewHead
        title={group}
        about={
          <>
            Group of <StreamLink stream={stream} />
          </>
        }
        actions={
          mayUse('operators') &&
          known !== null && (
            <>
              {known.parkedMessageCount > 0 && (
                <Button kind="primary" icon="play" onClick={() => setOpen('replay')}>
                  Replay parked
                </Button>
              )}
              <Button icon="edit" onClick={() => setOpen('edit')}>
                Edit settings
              </Button>
              <Menu
                label="More for this group"
                items={[
                  { label: 'Reset', icon: 'first', onSelect: () => setOpen('reset') },
                  {
                    label: 'Delete',
                    icon: 'trash',
                    isDanger: true,
                    onSelect: () => void remove(stream, group, known.parkedMessageCount),
                  },
                ]}
              />
            </>
          )
        }
      >
        {known !== null && <GroupBadge status={known.status} consumers={known.connectionCount} />}
      </ViewHead>
      <Loading polled={details} what="The group" lines={8}>
        {(info) => (
          <Tabs
            label="Sections of the group"
            tabs={[
              { name: 'overview', label: 'Overview' },
              {
                name: 'parked',
                label: `Parked${info.parkedMessageCount > 0 ? ` (${numberText(info.parkedMessageCount)})` : ''}`,
              },
              { name: 'settings', label: 'Settings' },
            ]}
            current={tab}
            onChange={(name) => setQuery({ tab: name === 'overview' ? null : name })}
          >
            {tab === 'parked' ? (
              <ParkedMessages stream={stream} group={group} count={info.parkedMessageCount} />
            ) : tab === 'settings' ? (
              <Settings info={info} />
            ) : (
              <Overview path={path} info={info} />
            )}
          </Tabs>
        )}
      </Loading>
      {known !== null && (
        <GroupDialog
          isOpen={open === 'edit'}
          edited={{ stream, group, config: known.config }}
          onClose={close}
          onDone={changed}
        />
      )}
      {known !== null && (
        <ReplayDialog
          isOpen={open === 'replay'}
          stream={stream}
          group={group}
          count={known.parkedMessageCount}
          onClose={close}
          onDone={changed}
        />
      )}
      <ResetDialog isOpen={open === 'reset'} stream={stream} group={group} onClose={close} onDone={changed} />
    </>
  );
}

function useMeasured(name: string, info: DetailsDocument | null, atMs: number | null): void {
  useEffect(() => {
    if (info !== null && atMs !== null)
      record(name, atMs, {
        rate: info.averageItemsPerSecond,
        lag: lagOf(info, info.config.startPosition)?.amount ?? null,
        flight: info.totalInFlightMessages,
      });
  }, [name, atMs]);
}

function StreamLink({ stream }: { readonly stream: string }) {
  return stream === ALL ? (
    <>
      the whole log (<code>$all</code>)
    </>
  ) : (
    <a class="break" href={hrefOf(pathTo('streams', stream))}>
      {stream}
    </a>
  );
}

function Gone({ stream, group }: { readonly stream: string; readonly group: string }) {
  return (
    <Card>
      <EmptyState
        isWhole
        icon="subscriptions"
        title="There is no such group"
        action={<Button href="/subscriptions">All groups</Button>}
      >
        <span class="break">
          No group{' '}
          <strong>
            <Name text={group} isWhole />
          </strong>{' '}
          of{' '}
          <strong>
            <Name text={stream} isWhole />
          </strong>{' '}
          on this node. It may have been deleted.
        </span>
      </EmptyState>
    </Card>
  );
}

async function remove(stream: string, group: string, parked: number): Promise<void> {
  const isDone = await confirm({
    title: 'Delete this group',
    action: 'Delete group',
    isDanger: true,
    typed: group,
    text: (
      <>
        Its checkpoint
        {parked > 0 && (
          <>
            {' '}
            and <strong>{countText(parked, 'parked message')}</strong>
          </>
        )}{' '}
        will be deleted, and its consumers dropped. The events of the stream stay. A new group of the same name starts
        over.
      </>
    ),
    run: async () => {
      await del(groupPath(stream, group));
    },
  });
  if (!isDone) return;
  toast(`${group} is deleted`);
  goTo('/subscriptions');
}

function Overview({ path, info }: { readonly path: string; readonly info: DetailsDocument }) {
  const node = useNodePast(`${path}/history`);
  const { hour, times, values, spanMs } = usePast(node, LINES, historyOf(`subscription ${path}`).value);
  const lag = lagOf(info, info.config.startPosition);
  return (
    <div class="stack">
      <div class="tiles">
        <Stat
          label="Lag"
          value={<LagText lag={lag} />}
          note={lag === null ? 'known once events are read' : `${LAG_UNITS[lag.unit]} behind the end`}
          points={evenly(hour, 'lag')}
        />
        <Stat
          label="In flight"
          value={<Num value={info.totalInFlightMessages} />}
          note="sent, not yet acknowledged"
          points={evenly(hour, 'flight')}
        />
        <Stat
          label="Sent"
          value={`${shortText(info.averageItemsPerSecond)}/s`}
          note={`${numberText(info.totalItemsProcessed)} since startup`}
          points={evenly(hour, 'rate')}
        />
        <Stat
          label="Parked"
          value={<Num value={info.parkedMessageCount} />}
          note={info.parkedMessageCount === 0 ? 'nothing to review' : 'to review'}
          {...(info.parkedMessageCount > 0 && { tone: 'warn' as const })}
        />
      </div>
      <div class="columns">
        <Card title="Position">
          <Definitions
            items={[
              ['Checkpoint', info.lastCheckpointedEventPosition ?? <span class="faint">none yet</span>],
              ['Last known event', info.lastKnownEventPosition ?? <span class="faint">none yet</span>],
              ['Starts at', startText(info.config.startPosition)],
              ['Strategy', strategyText(info.config.namedConsumerStrategy)],
            ]}
          />
        </Card>
        <Card title="Buffers">
          <Definitions
            items={[
              ['Read ahead', <Num value={info.readBufferCount} />],
              ['Live, while it catches up', <Num value={info.liveBufferCount} />],
              ['To be retried', <Num value={info.retryBufferCount} />],
              ['Sent, not acknowledged', <Num value={info.outstandingMessagesCount} />],
            ]}
          />
        </Card>
      </div>
      <Card
        isFlush={info.connections.length > 0}
        title="Consumers"
        note={info.connections.length > 0 ? countText(info.connections.length, 'connection') : undefined}
      >
        <Table
          label="Consumers"
          columns={CONSUMERS}
          rows={info.connections}
          keyOf={({ connectionName, from }) => `${from} ${connectionName}`}
          empty={
            <EmptyState icon="users" title="No consumers connected">
              gRPC clients connect by the names of the stream and the group; HTTP clients fetch messages from{' '}
              <code class="break">{groupPath(info.eventStreamId, info.groupName)}</code> request by request and are not
              shown here.
            </EmptyState>
          }
        />
      </Card>
      <div class="toolbar">
        <RangeChoice past={node} />
      </div>
      <Card>
        <Chart
          title="Messages sent"
          times={times}
          series={[{ label: 'Sent', values: values['rate'] ?? [] }]}
          unit="perSecond"
          {...(spanMs !== undefined && { spanMs })}
        />
      </Card>
    </div>
  );
}

/** As it is kept: `0`, `-1` for the end; `C:0/P:0` and `C:-1/P:-1`. */
export function startText(position: string): string {
  if (position === '0' || position === 'C:0/P:0') return 'the first event';
  if (position.startsWith('-1') || position.startsWith('C:-1')) return 'events written after its creation';
  return position.startsWith('C:') ? position : `event ${numberText(Number(position))}`;
}

type Consumer = DetailsDocument['connections'][number];

const CONSUMERS: readonly Column<Consumer>[] = [
  {
    name: 'name',
    title: 'Connection',
    width: '33%',
    isName: true,
    render: ({ connectionName, from }) => (
      <span class="truncate" title={connectionName}>
        <Name text={connectionName === '' ? from : connectionName} />
      </span>
    ),
  },
  {
    name: 'from',
    title: 'From',
    width: '16%',
    isMinor: true,
    isName: true,
    render: ({ from, username }) => (
      <span class="truncate" title={username === '' ? from : `${from} as ${username}`}>
        {from}
        {username !== '' && <span class="faint"> as {username}</span>}
      </span>
    ),
  },
  {
    name: 'rate',
    title: 'Sent',
    align: 'end',
    render: ({ averageItemsPerSecond }) => `${shortText(averageItemsPerSecond)}/s`,
  },
  {
    name: 'total',
    title: 'Total',
    align: 'end',
    isMinor: true,
    render: ({ totalItemsProcessed }) => <Num value={totalItemsProcessed} />,
  },
  {
    name: 'flight',
    title: 'In flight',
    align: 'end',
    render: ({ inFlightMessages }) => <Num value={inFlightMessages} />,
  },
  {
    name: 'slots',
    title: 'Free slots',
    align: 'end',
    isMinor: true,
    render: ({ availableSlots }) => <Num value={availableSlots} />,
  },
  {
    name: 'answers',
    title: 'Latency',
    isMinor: true,
    render: ({ extraStatistics }) => <span class="muted">{answersText(extraStatistics)}</span>,
  },
];

/** Half of all and nearly all of them, where the group measures it. */
function answersText(measured: Consumer['extraStatistics']): string {
  const of = (...keys: readonly string[]) => measured.find(({ key }) => keys.includes(key.toLowerCase()))?.value;
  const [half, most] = [
    of('median', 'fifty percent'),
    of('ninetynine percent', 'ninety nine percent', 'ninetyninepercent'),
  ];
  return half === undefined && most === undefined
    ? '–'
    : [
        half === undefined ? null : `${durationText(half)} (p50)`,
        most === undefined ? null : `${durationText(most)} (p99)`,
      ]
        .filter((part) => part !== null)
        .join(', ');
}

function Settings({ info: { config } }: { readonly info: DetailsDocument }) {
  const items: readonly (readonly [ComponentChildren, ComponentChildren])[] = [
    ['Starts at', startText(config.startPosition)],
    ['Strategy', strategyText(config.namedConsumerStrategy)],
    [
      'Message timeout',
      config.messageTimeoutMilliseconds === 0 ? 'none' : durationText(config.messageTimeoutMilliseconds),
    ],
    ['Max retries', numberText(config.maxRetryCount)],
    ['Max consumers', config.maxSubscriberCount === 0 ? 'no limit' : numberText(config.maxSubscriberCount)],
    [
      'Checkpoints',
      `after ${durationText(config.checkPointAfterMilliseconds)} with at least ${countText(config.minCheckPointCount, 'message')} processed, at once with ${numberText(config.maxCheckPointCount)}`,
    ],
    ['Read buffer', `${countText(config.bufferSize, 'message')}, read ${numberText(config.readBatchSize)} at a time`],
    ['Live buffer', countText(config.liveBufferSize, 'message')],
    ['Links', config.resolveLinktos ? 'resolved: consumers get the event that a link points to' : 'sent as links'],
    ['Latency', config.extraStatistics ? 'measured' : 'not measured'],
  ];
  return (
    <Card title="Settings">
      <Definitions isWide items={items} />
    </Card>
  );
}
