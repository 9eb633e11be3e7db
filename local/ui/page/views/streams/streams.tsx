import { useMemo, useState } from 'preact/hooks';
import type { ViewProps } from '../../views.ts';
import { mayUse } from '../../api/page-session.ts';
import { countText, numberText, percentText } from '../../lib/format.ts';
import { goTo, hrefOf, setQuery } from '../../lib/router.ts';
import { Badge } from '../../parts/badge.tsx';
import { Button } from '../../parts/button.tsx';
import { Card, ViewHead } from '../../parts/card.tsx';
import { Dotted } from '../../parts/dotted.tsx';
import { EmptyState, ErrorState } from '../../parts/empty-state.tsx';
import { Locked } from '../../parts/locked.tsx';
import { Name } from '../../parts/name.tsx';
import { SearchField } from '../../parts/search-field.tsx';
import { Skeleton } from '../../parts/loading.tsx';
import { Table } from '../../parts/table.tsx';
import type { Column } from '../../parts/table.tsx';
import { Time } from '../../parts/time.tsx';
import { AppendDialog } from './append-dialog.tsx';
import { isMetastream, isReachable, isSystem, viewOf } from './name-search.ts';
import { STREAMS_MAX, useStreams } from './use-streams.ts';
import type { StreamsState, Wanted } from './use-streams.ts';
import type { StreamDocument } from '../../../../../handlers/documents/streams.ts';

/** The streams that were written or created lately, and those of a name. */
export default function Streams({ query }: ViewProps) {
  const [isAppending, setAppending] = useState(false);
  const recent = query.get('recent') === 'created' ? 'created' : 'written';
  const search = query.get('q') ?? '';
  const withSystem = query.get('system') === 'true';
  const maySee = mayUse('operators');
  const wanted = useMemo((): Wanted => ({ recent, search, withSystem }), [recent, search, withSystem]);
  const found = useStreams(maySee ? wanted : null);
  // Then the button stands where the list would be.
  const isEmpty = maySee && search === '' && found.isWhole && found.streams.length === 0;
  return (
    <>
      <ViewHead
        title="Streams"
        about={maySee ? 'Newest first, as found in the log.' : 'Open a stream you may read by its name.'}
        actions={
          <>
            {!maySee && <OpenByName />}
            {!isEmpty && (
              <Button icon="plus" onClick={() => setAppending(true)}>
                Append
              </Button>
            )}
          </>
        }
      />
      <Card isFlush>
        {maySee ? (
          <>
            <div class="toolbar table-toolbar">
              <SearchField
                label="Search by name"
                value={search}
                onInput={(text) => setQuery({ q: text === '' ? null : text.slice(0, SEARCH_CHARACTERS_MAX) })}
              />
              {isReachable(search) && (
                <Button isSmall href={viewOf(search)} title={`Open the stream ${search}`}>
                  Open by this name
                </Button>
              )}
              <div class="segments" role="group" aria-label="Order">
                <Button
                  isSmall
                  kind="quiet"
                  isPressed={recent === 'written'}
                  onClick={() => setQuery({ recent: null })}
                >
                  Recently written
                </Button>
                <Button
                  isSmall
                  kind="quiet"
                  isPressed={recent === 'created'}
                  onClick={() => setQuery({ recent: 'created' })}
                >
                  Recently created
                </Button>
              </div>
              <label class="row small muted">
                <input
                  type="checkbox"
                  checked={withSystem}
                  onChange={(event) => setQuery({ system: event.currentTarget.checked ? 'true' : null })}
                />
                System streams
              </label>
              <span class="push">
                <Button kind="quiet" isSmall icon="refresh" label="Check for new streams" onClick={found.refresh} />
              </span>
            </div>
            <List found={found} wanted={wanted} onAppend={() => setAppending(true)} />
          </>
        ) : (
          <Locked needs="operators" title="You may not list streams" />
        )}
      </Card>
      <AppendDialog
        isOpen={isAppending}
        onClose={() => setAppending(false)}
        onDone={(_, stream) => {
          setAppending(false);
          goTo(viewOf(stream));
        }}
      />
    </>
  );
}

const SEARCH_CHARACTERS_MAX = 200;
/** Looked for with one press. */
const MORE = 500;

/** For users who may read streams, but not list them. */
function OpenByName() {
  const [text, setText] = useState('');
  return (
    <form
      class="row"
      role="search"
      aria-label="Open a stream"
      onSubmit={(event) => {
        event.preventDefault();
        if (text !== '') goTo(viewOf(text));
      }}
    >
      <input
        class="plain open-by-name"
        type="text"
        aria-label="Stream name"
        placeholder="Stream name"
        autocomplete="off"
        spellcheck={false}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <Button type="submit" isDisabled={text === ''}>
        Open
      </Button>
    </form>
  );
}

function List({
  found,
  wanted,
  onAppend,
}: {
  readonly found: StreamsState;
  readonly wanted: Wanted;
  readonly onAppend: () => void;
}) {
  const { streams, error, isLooking, isWhole } = found;
  const columns = useMemo(() => columnsOf(wanted.recent), [wanted.recent]);
  if (error !== null && streams.length === 0)
    return <ErrorState error={error} what="The list of streams" onRetry={found.refresh} />;
  return (
    <>
      {streams.length === 0 && isLooking ? (
        <div class="table-waiting">
          <Skeleton lines={8} />
        </div>
      ) : (
        <Table
          label="Streams"
          columns={columns}
          rows={streams}
          keyOf={({ stream }) => stream}
          onOpen={({ stream }) => goTo(viewOf(stream))}
          isFixed
          height="calc(100dvh - 19rem)"
          empty={<Nothing wanted={wanted} isWhole={isWhole} onAppend={onAppend} />}
        />
      )}
      <Footer found={found} />
    </>
  );
}

function Nothing({
  wanted: { search, withSystem },
  isWhole,
  onAppend,
}: {
  readonly wanted: Wanted;
  readonly isWhole: boolean;
  readonly onAppend: () => void;
}) {
  if (search !== '')
    return (
      <EmptyState icon="search" title={isWhole ? 'No stream name matches' : 'Nothing found so far'}>
        {isWhole ? (
          <>
            The whole log was searched. A deleted stream is found until a scavenge has removed its events; “Open by this
            name” still shows it.{!withSystem && ' System streams, whose names begin with $, were left out.'}
          </>
        ) : (
          'The rest of the log has not been searched yet.'
        )}
      </EmptyState>
    );
  return (
    <EmptyState
      icon="streams"
      title="There are no streams yet"
      action={
        <Button kind="primary" icon="plus" onClick={onAppend}>
          Append an event
        </Button>
      }
    >
      The first event of a stream creates it.
    </EmptyState>
  );
}

/** How far it has looked, and on. */
function Footer({
  found: { streams, hidden, looked, isLooking, isWhole, error, more, stop },
}: {
  readonly found: StreamsState;
}) {
  if (looked === null && !isLooking) return null;
  const isFull = streams.length >= STREAMS_MAX;
  return (
    <div class="table-foot">
      {looked !== null && !isWhole && (
        <div
          class="bar thin"
          role="progressbar"
          aria-label="Part of the log searched"
          aria-valuemin={0}
          aria-valuemax={100}
          aria-valuenow={Math.round(shareOf(looked) * 100)}
        >
          <div style={{ width: `${shareOf(looked) * 100}%` }} />
        </div>
      )}
      <span class="muted small grow" role={isLooking ? undefined : 'status'}>
        <Dotted
          items={[
            countText(streams.length, 'stream'),
            hidden > 0 ? `${numberText(hidden)} more not shown: no read access` : null,
            looked === null
              ? null
              : isWhole
                ? 'the whole log was searched'
                : `${percentText(shareOf(looked))} of the log searched`,
            isFull ? 'search for a name to see others' : null,
            error === null ? null : error.message,
          ]}
        />
      </span>
      {isLooking ? (
        <Button isSmall icon="stop" onClick={stop}>
          Stop searching
        </Button>
      ) : (
        !isWhole &&
        !isFull && (
          <div class="row wrap">
            <Button isSmall onClick={() => more(MORE)}>{`Find ${numberText(MORE)} more`}</Button>
            <Button isSmall onClick={() => more(STREAMS_MAX)}>
              Search all
            </Button>
          </div>
        )
      )}
    </div>
  );
}

function shareOf({ bytes, ofBytes }: { readonly bytes: number; readonly ofBytes: number }): number {
  return ofBytes === 0 ? 1 : bytes / ofBytes;
}

function columnsOf(recent: 'written' | 'created'): readonly Column<StreamDocument>[] {
  // On a phone the time stays, by which they are ordered.
  return [
    { name: 'stream', title: 'Stream', isName: true, render: (row) => <StreamCell row={row} /> },
    {
      name: 'last',
      title: 'Last\u00a0event',
      width: '9rem',
      align: 'end',
      isMinor: true,
      render: ({ lastEventNumber }) =>
        lastEventNumber < 0 || !Number.isSafeInteger(lastEventNumber) ? (
          <span class="faint">–</span>
        ) : (
          <span class="mono">{numberText(lastEventNumber)}</span>
        ),
    },
    {
      name: 'written',
      title: recent === 'written' ? 'Written' : 'Created',
      width: 'min(11rem, 38vw)',
      align: 'end',
      render: ({ writtenAt }) => (
        <span class="muted">
          <Time at={writtenAt} />
        </span>
      ),
    },
  ];
}

function StreamCell({ row: { stream, isDeleted, lastEventNumber } }: { readonly row: StreamDocument }) {
  return (
    <span class="row cell">
      {isReachable(stream) ? (
        <a class="plain-link truncate" href={hrefOf(viewOf(stream))} title={stream}>
          <Name text={stream} />
        </a>
      ) : (
        <span class="truncate" title="This name can't be used over HTTP">
          <Name text={stream} />
        </span>
      )}
      {isSystem(stream) && <Badge tone="info">{isMetastream(stream) ? 'metadata' : 'system'}</Badge>}
      {/* The tombstone has the highest number that there is. */}
      {isDeleted && <Badge tone="warn">{Number.isSafeInteger(lastEventNumber) ? 'deleted' : 'hard-deleted'}</Badge>}
    </span>
  );
}
