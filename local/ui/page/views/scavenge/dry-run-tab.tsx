import { useMemo, useState } from 'preact/hooks';
import { bytesText, countText, numberText, percentText } from '../../lib/format.ts';
import { Badge } from '../../parts/badge.tsx';
import { Button } from '../../parts/button.tsx';
import { Card } from '../../parts/card.tsx';
import { EmptyState, ErrorState, Notice } from '../../parts/empty-state.tsx';
import { Progress } from '../../parts/progress.tsx';
import { Stat } from '../../parts/stat.tsx';
import { Table } from '../../parts/table.tsx';
import type { Column } from '../../parts/table.tsx';
import { Time } from '../../parts/time.tsx';
import { useDryRun, useStart } from './dry-run-report.ts';
import type { DryRunChunk } from '../../../../../core/scavenge/api.ts';
import type { DryRunDocument } from '../../../../../handlers/documents/scavenging.ts';
import type { Run } from './scavenge-view.ts';
import { RunProgress, StopButton } from './run-bar.tsx';
import { olderText } from './resumed-point-note.ts';
import { isExecuted, outcomeAt, outcomesOf } from './thresholds.ts';
import type { Outcome } from './thresholds.ts';

/** What a scavenge would win, counted without changing anything, and what of it at which threshold. */
export function DryRunTab({ run }: { readonly run: Run }) {
  const { report, isUnderWay } = useDryRun();
  const { isStarting, start } = useStart(run.current);
  const error = run.current.data.value === null ? run.current.error.value : null;
  const isOther = run.scavengeId !== null && run.isDry === false;
  const button = (text: string) => (
    <Button
      kind={report === null ? 'primary' : 'plain'}
      icon="search"
      isBusy={isStarting || isUnderWay}
      isDisabled={isOther}
      title={isOther ? 'A scavenge is running' : undefined}
      onClick={() => void start()}
    >
      {text}
    </Button>
  );
  return (
    <>
      {run.scavengeId !== null && (
        <Card>
          <div class="row">
            <div class="grow">
              <RunProgress run={run} />
            </div>
            <StopButton run={run} isSmall />
          </div>
        </Card>
      )}
      {run.scavengeId === null && isUnderWay && (
        <Card>
          <Progress label="Dry run" phase="Dry run: starting or finishing" done={null} />
        </Card>
      )}
      {report === null ? (
        !isUnderWay && (
          <Card>
            {error !== null ? (
              <ErrorState error={error} what="The dry run" onRetry={() => void run.current.refresh()} />
            ) : (
              <EmptyState icon="scavenge" title="No report here yet" action={button('Start a dry run')}>
                A dry run goes through the log as a scavenge does and counts what it would remove, chunk by chunk. It
                writes nothing and can be stopped at any time.
              </EmptyState>
            )}
          </Card>
        )
      ) : (
        <Report report={report} again={button('Run again')} />
      )}
    </>
  );
}

function Report({ report, again }: { readonly report: DryRunDocument; readonly again: preact.ComponentChildren }) {
  const outcomes = useMemo(() => outcomesOf(report), [report]);
  const [at, setAt] = useState(() => outcomeAt(outcomes, report.threshold));
  const outcome = outcomes[Math.min(at, outcomes.length - 1)]!;
  const most = Math.max(...outcomes.map(({ won }) => won), 0);
  const { totals } = report;
  return (
    <>
      {report.waiting !== undefined && (
        <Notice title="The next scavenge reclaims less than this">
          {olderText(report.waiting)} “Start fresh” reclaims all of it.
        </Notice>
      )}
      <div class="tiles">
        <Stat
          label="Would reclaim"
          value={bytesText(Math.max(0, outcome.won))}
          note={`${percentText(totals.bytes === 0 ? 0 : Math.max(0, outcome.won) / totals.bytes)} of ${bytesText(totals.bytes)}`}
        />
        <Stat
          label="Files rewritten"
          value={`${numberText(outcome.chunks)} of ${numberText(totals.chunks)}`}
          note={`${bytesText(outcome.bytes)} to read and write`}
        />
        <Stat
          label="Records removed"
          value={numberText(outcome.records)}
          note={`of ${numberText(totals.records)} in the log${outcome.emptied === 0 ? '' : `; ${numberText(outcome.emptied)} more ${outcome.emptied === 1 ? 'loses its' : 'lose their'} data`}`}
        />
        <Stat
          label="Counted"
          value={<Time at={report.point.effectiveNow} show="relative" />}
          note={<Time at={report.point.effectiveNow} show="near" />}
        />
      </div>
      <Card
        title="Threshold"
        note="the weight from which a chunk is rewritten"
        actions={
          <>
            <Button kind="primary" href={`/scavenge?threshold=${outcome.threshold}`}>
              Use {numberText(outcome.threshold)}
            </Button>
            {again}
          </>
        }
      >
        <div class="threshold">
          <div class="grow stack tight">
            <input
              type="range"
              class="slider"
              min={0}
              max={outcomes.length - 1}
              step={1}
              value={at}
              aria-label="Threshold"
              aria-valuetext={`${outcome.threshold}: ${outcomeText(outcome, most)}`}
              onInput={(event) => setAt(Number(event.currentTarget.value))}
            />
            <div class="row spread small faint">
              <span>every chunk</span>
              <span>{outcomes.length > 2 ? 'only the heaviest' : 'with anything to remove'}</span>
            </div>
            <p>
              <strong>{thresholdText(outcome.threshold)}</strong>{' '}
              <span class="muted">{outcomeText(outcome, most)}</span>
            </p>
            <p class="small muted">
              The more removable events a chunk has, the more it weighs. A few heavy chunks often hold most of the
              reclaimable space.
            </p>
          </div>
          {most > 0 && <Curve outcomes={outcomes} at={at} most={most} />}
        </div>
      </Card>
      <Card title="By chunk" isFlush>
        <ByChunk chunks={report.chunks} threshold={outcome.threshold} />
      </Card>
    </>
  );
}

function thresholdText(threshold: number): string {
  if (threshold < 0) return `${numberText(threshold)}: every chunk.`;
  return threshold === 0 ? '0: every chunk with anything to remove.' : `${numberText(threshold)} or more.`;
}

function outcomeText({ chunks, bytes, won }: Outcome, most: number): string {
  if (chunks === 0) return 'No file would be rewritten.';
  return `${countText(chunks, 'file')}, ${bytesText(bytes)}, would be rewritten, which reclaims ${won < 0 ? 'nothing: the files would grow' : `${bytesText(won)}${most > 0 ? `, ${percentText(won / most)} of what can be reclaimed` : ''}`}.`;
}

/** How much is won for how much work, over all thresholds. */
function Curve({
  outcomes,
  at,
  most,
}: {
  readonly outcomes: readonly Outcome[];
  readonly at: number;
  readonly most: number;
}) {
  const work = Math.max(1, ...outcomes.map(({ bytes }) => bytes));
  const points = outcomes.map(
    ({ bytes, won }) => [(bytes / work) * 100, 100 - (most === 0 ? 0 : (Math.max(0, won) / most) * 100)] as const,
  );
  const line = [...points, [0, 100] as const].map(([x, y]) => `${x.toFixed(2)},${y.toFixed(2)}`).join(' ');
  const [x, y] = points[at] ?? [0, 100];
  return (
    <figure class="curve" aria-hidden="true">
      <div class="curve-plot">
        <svg viewBox="0 0 100 100" preserveAspectRatio="none">
          <polygon class="area" points={`${line} ${points[0]?.[0] ?? 0},100`} />
          <polyline class="line" points={line} />
        </svg>
        <span class="curve-at" style={{ left: `${x}%`, top: `${y}%` }} />
      </div>
      <figcaption class="row spread small faint">
        <span>reclaimed</span>
        <span>bytes rewritten →</span>
      </figcaption>
    </figure>
  );
}

function ByChunk({ chunks, threshold }: { readonly chunks: readonly DryRunChunk[]; readonly threshold: number }) {
  const columns = useMemo(
    (): readonly Column<DryRunChunk>[] => [
      {
        name: 'chunk',
        title: 'Chunk',
        width: '6rem',
        sortBy: ({ start }) => start,
        render: ({ start, end }) => (
          <strong>{start === end ? numberText(start) : `${numberText(start)}–${numberText(end)}`}</strong>
        ),
      },
      {
        name: 'share',
        title: 'Share removed',
        sortBy: ({ bytes, bytesReclaimable }) => (bytes === 0 ? 0 : bytesReclaimable / bytes),
        render: ({ bytes, bytesReclaimable }) => {
          const share = bytes === 0 ? 0 : Math.max(0, bytesReclaimable / bytes);
          return (
            <span class="share-bar">
              <span class="share-track">
                <span style={{ width: `${share * 100}%` }} />
              </span>
              <span class="share-text">{percentText(share)}</span>
            </span>
          );
        },
      },
      {
        name: 'won',
        title: 'Would reclaim',
        width: '6rem',
        align: 'end',
        sortBy: ({ bytesReclaimable }) => bytesReclaimable,
        render: ({ bytesReclaimable }) => bytesText(Math.max(0, bytesReclaimable)),
      },
      {
        name: 'records',
        title: 'Records',
        width: '10rem',
        align: 'end',
        isMinor: true,
        sortBy: ({ discardable }) => discardable,
        render: ({ discardable, records }) => `${numberText(discardable)} of ${numberText(records)}`,
      },
      {
        name: 'weight',
        title: 'Weight',
        width: '7rem',
        align: 'end',
        isMinor: true,
        sortBy: ({ weight }) => weight,
        render: ({ weight }) => numberText(weight),
      },
      {
        name: 'executed',
        title: 'At this threshold',
        width: '9rem',
        isMinor: true,
        sortBy: (chunk) => (isExecuted(chunk, threshold) ? 1 : 0),
        render: (chunk) =>
          isExecuted(chunk, threshold) ? <Badge tone="accent">rewritten</Badge> : <span class="faint">left as is</span>,
      },
    ],
    [threshold],
  );
  return (
    <Table
      label="What would be removed, by chunk"
      columns={columns}
      rows={chunks}
      keyOf={({ start }) => start}
      sort={{ name: 'won', isDown: true }}
      height="32rem"
    />
  );
}
