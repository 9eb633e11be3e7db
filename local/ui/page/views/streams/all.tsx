import { useMemo, useState } from 'preact/hooks';
import type { ViewProps } from '../../views.ts';
import { setQuery } from '../../lib/router.ts';
import { Status } from '../../parts/badge.tsx';
import { Button } from '../../parts/button.tsx';
import { Card, ViewHead } from '../../parts/card.tsx';
import { Dotted } from '../../parts/dotted.tsx';
import { EmptyState, ErrorState, Notice } from '../../parts/empty-state.tsx';
import { Skeleton } from '../../parts/loading.tsx';
import { SearchField } from '../../parts/search-field.tsx';
import { countText } from '../../lib/format.ts';
import { ConditionBar, conditionsIn, queryOf } from './conditions.tsx';
import { EventTable } from './event-table.tsx';
import { readFullPage } from './event-feed.ts';
import type { Source } from './event-feed.ts';
import { addressOf, ALL } from './name-search.ts';
import { Pager } from './pager.tsx';
import { Refused } from './refused.tsx';
import { useFeed } from './use-feed.ts';

const COUNT = 50;
const START = '0'.repeat(32);

/** The newest events over all streams. */
export default function All({ query }: ViewProps) {
  const on = query.get('on') === 'type' ? 'type' : 'stream';
  const prefix = query.get('q') ?? '';
  const withSystem = query.get('system') === 'true';
  const from = /^[0-9A-F]{32}$/.exec(query.get('from') ?? '')?.[0] ?? null;
  const [isFollowed, setFollowed] = useState(true);
  const conditions = conditionsIn(query);
  const hasConditions = conditions.length > 0;
  const wanted = hasConditions
    ? { base: addressOf(ALL), query: queryOf(conditions), resolvesLinks: false }
    : sourceOf(on, prefix, withSystem);
  const key = JSON.stringify(wanted);
  const source = useMemo((): Source => wanted, [key]);
  const feed = useFeed(key, source, from, COUNT, isFollowed);
  const { page, error } = feed;
  const rows = page?.rows ?? [];
  const show = (place: string | null) => setQuery({ from: place });
  const isNewest = from === null;
  const isFollowing = isFollowed && isNewest;
  const showNewer = async () => {
    const next = await readFullPage(source, page!.newer!, 'forward', COUNT);
    show(next.rows.length < COUNT && !next.isCut ? null : next.newer);
  };
  return (
    <>
      <ViewHead title="All events" about="The events of all streams, in log order, or those that meet conditions." />
      <Card isFlush>
        <div class="toolbar table-toolbar">
          <Button
            isSmall
            icon={isFollowing ? 'pause' : 'play'}
            isPressed={isFollowing}
            isDisabled={!isNewest}
            title={isNewest ? undefined : 'Only the newest page is followed'}
            onClick={() => setFollowed(!isFollowed)}
          >
            {isFollowing ? 'Following' : 'Follow'}
          </Button>
          {!hasConditions && (
            <>
              <select
                class="plain small"
                aria-label="Filter by"
                value={on}
                onChange={(event) => setQuery({ on: event.currentTarget.value === 'type' ? 'type' : null, from: null })}
              >
                <option value="stream">Streams</option>
                <option value="type">Types</option>
              </select>
              <SearchField
                label={on === 'stream' ? 'Streams starting with' : 'Types starting with'}
                value={prefix}
                onInput={(text) => setQuery({ q: text === '' ? null : text, from: null })}
              />
              <label class="row small muted">
                <input
                  type="checkbox"
                  checked={withSystem}
                  onChange={(event) => setQuery({ system: event.currentTarget.checked ? 'true' : null, from: null })}
                />
                System events
              </label>
            </>
          )}
          <span class="push row wrap">
            <span class="muted small nowrap">
              <Dotted
                items={[
                  rows.length > 0 ? countText(rows.length, 'event') : null,
                  feed.isLive ? (
                    <Status tone="ok" isLive>
                      live
                    </Status>
                  ) : null,
                ]}
              />
            </span>
            <Pager
              onNewest={isNewest ? null : () => show(null)}
              onNewer={isNewest || page?.newer == null ? null : () => void showNewer().catch(() => show(null))}
              onOlder={page?.older == null ? null : () => show(page.older)}
              onOldest={
                page?.older == null
                  ? null
                  : () => void readFullPage(source, START, 'forward', COUNT).then(({ newer }) => show(newer))
              }
            />
          </span>
        </div>
        <ConditionBar conditions={conditions} />
        {feed.hasSkipped && (
          <Notice tone="info">Events arrive faster than they can be shown. Page back to see them all, or pause.</Notice>
        )}
        {error !== null ? (
          error.code === 'access_denied' ? (
            <Refused stream={ALL} error={error} />
          ) : (
            <ErrorState error={error} what="The list of events" onRetry={feed.reload} />
          )
        ) : page === null ? (
          <div class="table-waiting">
            <Skeleton lines={10} />
          </div>
        ) : (
          <EventTable
            key={from}
            label="Events of all streams"
            rows={rows}
            previews={feed.previews}
            fresh={feed.fresh}
            showsStream
            onRedacted={feed.reload}
            empty={
              <Nothing
                isNarrowed={hasConditions || prefix !== ''}
                withSystem={withSystem || hasConditions}
                isMore={page.older !== null}
                onOlder={() => show(page.older)}
              />
            }
          />
        )}
      </Card>
    </>
  );
}

function Nothing({
  isNarrowed,
  withSystem,
  isMore,
  onOlder,
}: {
  readonly isNarrowed: boolean;
  readonly withSystem: boolean;
  readonly isMore: boolean;
  readonly onOlder: () => void;
}) {
  if (isMore)
    return (
      <EmptyState
        icon="search"
        title="Nothing found so far"
        action={<Button onClick={onOlder}>Look further back</Button>}
      >
        Nothing in this part of the log matches.
      </EmptyState>
    );
  return (
    <EmptyState icon="all" title={isNarrowed ? 'No events match' : 'Nothing has been written yet'}>
      {isNarrowed && 'Take a condition away to see more. '}
      New events appear here.
      {!withSystem && ' System events are left out; “System events” shows them.'}
    </EmptyState>
  );
}

/** Without a filter all that the log holds; else the node looks for what fits. */
function sourceOf(on: 'stream' | 'type', prefix: string, withSystem: boolean): Source {
  if (prefix === '' && withSystem) return { base: '/streams/%24all', query: {}, resolvesLinks: false };
  const context = on === 'stream' ? 'StreamId' : 'EventType';
  // A comma separates prefixes, so that one with a comma is an expression.
  const isPlain = prefix !== '' && !prefix.includes(',');
  const filter =
    prefix === ''
      ? { context: 'StreamId', type: 'Regex', data: '^[^$]' }
      : isPlain
        ? { context, type: 'Prefix', data: prefix }
        : { context, type: 'Regex', data: `^${prefix.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&')}` };
  return {
    base: '/streams/%24all/filtered',
    query: { ...filter, 'exclude-system-events': String(!withSystem) },
    resolvesLinks: false,
  };
}
