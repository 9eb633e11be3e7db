import { useEffect, useState } from 'preact/hooks';
import { get } from '../../api/page-client.ts';
import { errorOf } from '../../api/problem-text.ts';
import type { ApiError } from '../../api/problem-text.ts';
import { absoluteText, bytesText, countText, durationText, lastText, msOf, numberText } from '../../lib/format.ts';
import { pathTo, setQuery } from '../../lib/router.ts';
import { Button } from '../../parts/button.tsx';
import { Card } from '../../parts/card.tsx';
import { Definitions } from '../../parts/definitions.tsx';
import { EmptyState, ErrorState, Notice } from '../../parts/empty-state.tsx';
import { Field, Form } from '../../parts/form.tsx';
import { Skeleton } from '../../parts/loading.tsx';
import { Table } from '../../parts/table.tsx';
import type { Column } from '../../parts/table.tsx';
import type { ExplanationDocument, ResumedPointDocument } from '../../../../../handlers/documents/scavenging.ts';

/** What each rule says, for people who have not learnt the words. */
function ruleText(rule: string, value: unknown): string {
  if (rule === '$maxCount') return `It keeps ${lastText(Number(value), 'event')} ($maxCount).`;
  if (rule === '$maxAge') return `Events older than ${durationText(Number(value) * 1_000)} are removed ($maxAge).`;
  if (rule === '$tb')
    return `Events before number ${numberText(Number(value))} are removed ($tb): the stream was deleted or truncated there.`;
  if (rule === 'tombstone')
    return "The stream was hard-deleted: all its events are removed, and its name can't be used again.";
  if (rule === 'superseded-metadata') return 'Only the newest metadata counts: older versions are removed.';
  return `${rule}: ${String(value)}`;
}

const WHY: Readonly<Record<string, string>> = {
  $maxCount: 'beyond $maxCount',
  $maxAge: 'older than $maxAge',
  $tb: 'before $tb',
  tombstone: 'of a deleted stream',
  'superseded-metadata': 'superseded metadata',
};
const WAIT_MS = 120_000;

/** Why events of one stream go or stay when a scavenge begins now. */
export function Explain({ stream }: { readonly stream: string | null }) {
  const [found, setFound] = useState<ExplanationDocument | ApiError | null>(null);
  const [asked, setAsked] = useState(0);
  useEffect(() => {
    setFound(null);
    if (stream === null) return;
    const ending = new AbortController();
    get<ExplanationDocument>(`/admin/scavenge/explain/${encodeURIComponent(stream)}`, {
      signal: ending.signal,
      timeoutMs: WAIT_MS,
    }).then(setFound, (thrown: unknown) => {
      if (!ending.signal.aborted) setFound(errorOf(thrown));
    });
    return () => ending.abort();
  }, [stream, asked]);
  return (
    <>
      <Card>
        <Form
          onSubmit={async ({ stream: name = '' }) => {
            setQuery({ stream: name });
            setAsked(asked + 1);
          }}
          buttons={() => (
            <Button type="submit" kind="primary" icon="search">
              Explain
            </Button>
          )}
        >
          <Field
            name="stream"
            label="Stream"
            value={stream ?? ''}
            isRequired
            isMono
            spellcheck={false}
            placeholder="orders-1"
            about="Its exact name. The answer holds for a scavenge started now; nothing is changed."
          />
        </Form>
      </Card>
      {stream !== null &&
        (found === null ? (
          <Card>
            <Skeleton />
          </Card>
        ) : found instanceof Error ? (
          <Card>
            {found.status === 404 ? (
              <EmptyState icon="streams" title="There is no such stream">
                Check the name: it is taken letter by letter.
              </EmptyState>
            ) : (
              <ErrorState error={found} what="The explanation" onRetry={() => setAsked(asked + 1)} />
            )}
          </Card>
        ) : (
          <Explained explanation={found} />
        ))}
    </>
  );
}

interface Range {
  readonly key: string;
  readonly from: number;
  readonly to: number;
  readonly count: number;
  readonly bytes: number | null;
  readonly goes: boolean;
  readonly why: string;
}

const COLUMNS: readonly Column<Range>[] = [
  {
    name: 'events',
    title: 'Events',
    width: '12rem',
    sortBy: ({ from }) => from,
    render: ({ from, to }) => (
      <strong>{from === to ? numberText(from) : `${numberText(from)}–${numberText(to)}`}</strong>
    ),
  },
  {
    name: 'goes',
    title: 'Fate',
    width: '7rem',
    sortBy: ({ goes }) => (goes ? 0 : 1),
    render: ({ goes }) => (
      <span class="row">
        <span class={`fate ${goes ? 'goes' : 'stays'}`} />
        {goes ? 'goes' : 'stays'}
      </span>
    ),
  },
  {
    name: 'count',
    title: 'Count',
    width: '7rem',
    align: 'end',
    sortBy: ({ count }) => count,
    render: ({ count }) => numberText(count),
  },
  {
    name: 'bytes',
    title: 'Bytes',
    width: '7rem',
    align: 'end',
    isMinor: true,
    sortBy: ({ bytes }) => bytes,
    render: ({ bytes }) => bytesText(bytes),
  },
  { name: 'why', title: 'Why', render: ({ why }) => why },
];

function Explained({ explanation }: { readonly explanation: ExplanationDocument }) {
  const { stream, lastEventNumber, rules, removed, kept, ignored = [], metadata, redacted, waiting } = explanation;
  const goes = removed.reduce((sum, { count }) => sum + count, 0);
  const bytes = removed.reduce((sum, range) => sum + range.bytes, 0);
  const stays = kept.reduce((sum, { count }) => sum + count, 0);
  const ranges: readonly Range[] = [
    ...removed.map((range): Range => ({
      ...range,
      key: `goes ${range.from} ${range.rule}`,
      goes: true,
      why: WHY[range.rule] ?? range.rule,
    })),
    ...kept.map((range): Range => ({ ...range, key: `stays ${range.from} ${range.why}`, bytes: null, goes: false })),
  ].sort((one, other) => one.from - other.from);
  const leaves = waiting?.leaves.reduce((sum, { count }) => sum + count, 0) ?? 0;
  const span = lastEventNumber + 1;
  return (
    <Card
      title={<span class="break">{stream}</span>}
      actions={
        <Button isSmall href={pathTo('streams', stream)}>
          Go to the stream
        </Button>
      }
    >
      <div class="stack">
        <p class="explained">
          <strong>
            {goes === 0
              ? 'Nothing is removed'
              : `${countText(goes, 'event')} (${bytesText(bytes)}) ${goes === 1 ? 'is' : 'are'} removed`}
          </strong>
          , {countText(stays, 'event')} {stays === 1 ? 'stays' : 'stay'}
          {redacted !== undefined && `, of which the last one loses its data (${bytesText(redacted.bytes)})`}.
        </p>
        {span > 0 && (
          <div>
            <div class="events-strip" aria-hidden="true">
              {ranges.map((range) => (
                <div
                  key={range.key}
                  class={range.goes ? 'goes' : 'stays'}
                  style={{
                    left: `${(range.from / span) * 100}%`,
                    width: `${((range.to - range.from + 1) / span) * 100}%`,
                  }}
                />
              ))}
            </div>
            <div class="row spread small faint">
              <span>event 0</span>
              {goes + stays <= lastEventNumber && (
                <span>{countText(lastEventNumber + 1 - goes - stays, 'event')} gone already</span>
              )}
              <span>event {numberText(lastEventNumber)}</span>
            </div>
          </div>
        )}
        {leaves > 0 && waiting !== undefined && (
          <Notice title={`The next scavenge does not remove ${countText(leaves, 'event')} of these yet`}>
            It works up to an older scavenge point{pointText(waiting)}, unless it is started fresh.
          </Notice>
        )}
        {ignored.length > 0 && (
          <Notice tone="warn" title="Some of the metadata has no effect">
            <ul>
              {ignored.map(({ key, value, why }, i) => (
                <li key={i} class="break">
                  <code>{key === null ? value : `${key}: ${value}`}</code>: {why}.
                </li>
              ))}
            </ul>
          </Notice>
        )}
        <Definitions
          isWide
          items={[
            [
              'Rules in force',
              rules.length === 0 ? (
                'None: its events are never removed.'
              ) : (
                <ul>
                  {rules.map(({ rule, value }) => (
                    <li key={rule}>{ruleText(rule, value)}</li>
                  ))}
                </ul>
              ),
            ],
            metadata === null ? null : ['Metadata', <code class="break">{JSON.stringify(metadata)}</code>],
          ]}
        />
      </div>
      {ranges.length > 0 && (
        <div class="card-wide">
          <Table
            label={`Events of ${stream}`}
            columns={COLUMNS}
            rows={ranges}
            keyOf={({ key }) => key}
            height="24rem"
          />
        </div>
      )}
    </Card>
  );
}

function pointText({ effectiveNow }: ResumedPointDocument): string {
  const ms = msOf(effectiveNow);
  return ms === null ? '' : ` of ${absoluteText(ms)}`;
}
