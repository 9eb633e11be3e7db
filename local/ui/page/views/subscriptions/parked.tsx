import { useEffect, useMemo, useState } from 'preact/hooks';
import { get } from '../../api/page-client.ts';
import { errorOf } from '../../api/problem-text.ts';
import type { ApiError } from '../../api/problem-text.ts';
import { countText, numberText } from '../../lib/format.ts';
import { hrefOf, pathTo } from '../../lib/router.ts';
import { Badge } from '../../parts/badge.tsx';
import { Button } from '../../parts/button.tsx';
import { Card } from '../../parts/card.tsx';
import { Code, JsonView } from '../../parts/code.tsx';
import { Definitions } from '../../parts/definitions.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { EmptyState, ErrorState } from '../../parts/empty-state.tsx';
import { Skeleton } from '../../parts/loading.tsx';
import { Name } from '../../parts/name.tsx';
import { Table } from '../../parts/table.tsx';
import type { Column } from '../../parts/table.tsx';
import { Time } from '../../parts/time.tsx';
import type { EmbeddedEntryDocument, PageDocument } from '../../../../../handlers/documents/streams.ts';

/** What stands with a message that was parked. */
interface Parking {
  readonly added?: string;
  readonly reason?: string;
}

const PAGE = 50;
/** How often the list is read while messages are on their way out of it. */
const REPLAYED_EVERY_MS = 3_000;

export interface ParkedProps {
  readonly stream: string;
  readonly group: string;
  /** Parked events whose replay was not asked for; they are the newest ones. */
  readonly count: number;
}

/**
 * Parked messages, newest first: why each was parked, and what is in it. Those that are replayed stay until a consumer
 * is done with them.
 */
export function ParkedMessages({ stream, group, count }: ParkedProps) {
  const [entries, setEntries] = useState<readonly EmbeddedEntryDocument[] | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const [next, setNext] = useState<number | null>(null);
  const [isBusy, setBusy] = useState(false);
  const [open, setOpen] = useState<EmbeddedEntryDocument | null>(null);
  const load = async (from: number | null) => {
    setBusy(true);
    try {
      const page = await get<PageDocument<EmbeddedEntryDocument>>(
        `/subscriptions/viewparkedmessages/${encodeURIComponent(stream)}/${encodeURIComponent(group)}/${from ?? 'head'}/backward/${PAGE}`,
        { query: { embed: 'body' } },
      );
      const lowest = page.entries.at(-1)?.positionEventNumber ?? 0;
      setEntries((last) => (from === null || last === null ? page.entries : [...last, ...page.entries]));
      setNext(page.entries.length < PAGE || lowest === 0 ? null : lowest - 1);
      setError(null);
    } catch (thrown) {
      const failed = errorOf(thrown);
      // There is no such stream before the first message is parked, nor after the group was deleted.
      if (failed.status === 404) setEntries([]);
      else setError(failed);
    } finally {
      setBusy(false);
    }
  };
  // With the number the list changes; it is read anew, and no more often.
  useEffect(() => void load(null), [stream, group, count]);
  const hasReplayed = entries !== null && entries.length > count;
  useEffect(() => {
    if (!hasReplayed) return;
    const timer = setInterval(() => {
      if (!document.hidden) void load(null);
    }, REPLAYED_EVERY_MS);
    return () => clearInterval(timer);
  }, [hasReplayed, stream, group]);
  const columns = useMemo(
    () => columnsFor(new Set(entries?.slice(count).map(({ positionEventNumber }) => positionEventNumber))),
    [entries, count],
  );
  if (error !== null)
    return (
      <Card>
        <ErrorState error={error} what="Parked messages" onRetry={() => void load(null)} />
      </Card>
    );
  if (entries === null) return <Skeleton lines={6} />;
  return (
    <Card
      isFlush={entries.length > 0}
      title="Parked messages"
      note={count > 0 ? countText(count, 'message') : undefined}
      actions={<Button isSmall icon="refresh" label="Refresh" isBusy={isBusy} onClick={() => void load(null)} />}
    >
      <Table
        label="Parked messages"
        columns={columns}
        rows={entries}
        keyOf={({ positionEventNumber }) => positionEventNumber}
        onOpen={setOpen}
        empty={
          <EmptyState icon="check" title="Nothing is parked">
            A message is parked when a consumer asks for it, or after the maximum number of retries. It stays here until
            it is replayed or deleted.
          </EmptyState>
        }
      />
      {next !== null && (
        <div class="table-more">
          <Button isBusy={isBusy} onClick={() => void load(next)}>{`Older than number ${numberText(next + 1)}`}</Button>
        </div>
      )}
      <Dialog
        title={open === null ? '' : `Parked message ${numberText(open.positionEventNumber)}`}
        isOpen={open !== null}
        onClose={() => setOpen(null)}
        size="large"
      >
        {open !== null && <Message entry={open} />}
      </Dialog>
    </Card>
  );
}

function parkingOf({ linkMetaData }: EmbeddedEntryDocument): Parking {
  try {
    const value: unknown = JSON.parse(linkMetaData ?? '{}');
    return typeof value === 'object' && value !== null ? (value as Parking) : {};
  } catch {
    return {};
  }
}

function reasonOf(entry: EmbeddedEntryDocument): string {
  const { reason } = parkingOf(entry);
  const text = typeof reason === 'string' ? reason.trim() : '';
  return text === '' ? 'No reason was given' : text;
}

const columnsFor = (replayed: ReadonlySet<number>): readonly Column<EmbeddedEntryDocument>[] => [
  {
    name: 'number',
    title: 'Number',
    width: '5rem',
    render: ({ positionEventNumber }) => numberText(positionEventNumber),
  },
  {
    name: 'type',
    title: 'Type',
    width: '22%',
    isName: true,
    render: ({ eventType }) => (
      <span class="truncate" title={eventType}>
        <Name text={eventType} />
      </span>
    ),
  },
  {
    name: 'event',
    title: 'Event',
    width: '20%',
    isMinor: true,
    isName: true,
    render: ({ title }) => (
      <span class="truncate muted" title={title}>
        <Name text={title} />
      </span>
    ),
  },
  {
    name: 'why',
    title: 'Reason',
    width: '30%',
    isName: true,
    render: (entry) => (
      <span class="row">
        <span class="truncate" title={reasonOf(entry)}>
          {reasonOf(entry)}
        </span>
        {replayed.has(entry.positionEventNumber) && (
          <Badge tone="info" title="It leaves this list once a consumer has acknowledged it">
            being sent again
          </Badge>
        )}
      </span>
    ),
  },
  {
    name: 'when',
    title: 'Parked',
    width: '9rem',
    isMinor: true,
    render: (entry) => <Time at={parkingOf(entry).added} />,
  },
];

function Message({ entry }: { readonly entry: EmbeddedEntryDocument }) {
  const { added } = parkingOf(entry);
  return (
    <div class="stack">
      <Definitions
        isWide
        items={[
          ['Reason', reasonOf(entry)],
          ['Parked at', <Time at={added} show="exact" />],
          [
            'Event',
            <a
              class="break"
              href={hrefOf(pathTo('streams', entry.streamId, String(entry.eventNumber)))}
            >{`${numberText(entry.eventNumber)} of ${entry.streamId}`}</a>,
          ],
          ['Type', <span class="break">{entry.eventType}</span>],
          ['Id', <code class="break">{entry.eventId}</code>],
        ]}
      />
      <div class="stack tight">
        <h3>Data</h3>
        {entry.data === null ? (
          <p class="muted">It is not JSON; open the event to save it as a file.</p>
        ) : entry.isJson ? (
          <JsonView text={entry.data} name="data.json" />
        ) : (
          <Code text={entry.data} name="data.txt" />
        )}
      </div>
      {entry.metaData !== null && entry.metaData !== '' && (
        <div class="stack tight">
          <h3>Metadata</h3>
          <JsonView text={entry.metaData} name="metadata.json" />
        </div>
      )}
    </div>
  );
}
