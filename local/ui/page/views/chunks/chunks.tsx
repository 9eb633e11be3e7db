import { useEffect, useMemo, useState } from 'preact/hooks';
import { announce } from '../../lib/announce.ts';
import { bytesText, countText, numberText, percentText } from '../../lib/format.ts';
import { setQuery } from '../../lib/router.ts';
import { Button } from '../../parts/button.tsx';
import { Card, ViewHead } from '../../parts/card.tsx';
import { Choice } from '../../parts/choice.tsx';
import { EmptyState, ErrorState } from '../../parts/empty-state.tsx';
import { Skeleton } from '../../parts/loading.tsx';
import { Stat } from '../../parts/stat.tsx';
import { Time } from '../../parts/time.tsx';
import type { ViewProps } from '../../views.ts';
import { useDryRun, useStart } from '../scavenge/dry-run-report.ts';
import type { DryRunDocument } from '../../../../../handlers/documents/scavenging.ts';
import { RunProgress, StopButton } from '../scavenge/run-bar.tsx';
import { filesBehind, useRun } from '../scavenge/scavenge-view.ts';
import { cellsOf } from './cells.ts';
import type { Cell } from './cells.ts';
import { useChunks } from './chunk-list.ts';
import type { ChunkList } from './chunk-list.ts';
import { ChunkTable } from './chunk-table.tsx';
import { ChunkDetail } from './detail.tsx';
import { Legend } from './legend.tsx';
import { ChunkGrid } from './map.tsx';
import { modeOf, MODES } from './modes.ts';

const ZOOMS = [1, 2, 4, 8] as const;
/** Fewer chunks are large enough as they are. */
const ZOOM_CHUNKS = 200;
const NONE: ReadonlySet<number> = new Set();

/** Every file of the log at once: what it holds, what has been removed from it, and what could be. */
export default function Chunks({ query }: ViewProps) {
  const { list, polled } = useChunks();
  const { report, isUnderWay } = useDryRun();
  const run = useRun();
  const { isStarting, start } = useStart(run.current);
  const isRunning = run.scavengeId !== null;
  useEffect(() => {
    if (isRunning) announce(run.isDry === true ? 'Dry run started' : 'Scavenge started');
  }, [isRunning]);

  const error = polled.error.value;
  return (
    <>
      <ViewHead
        title="Chunk map"
        about="Every chunk file of the log in order, oldest first."
        actions={
          <>
            <Button
              icon="search"
              isBusy={isStarting || isUnderWay}
              isDisabled={isRunning && !isUnderWay}
              title={isRunning && !isUnderWay ? 'A scavenge is running' : undefined}
              onClick={() => void start()}
            >
              {report === null ? 'Start a dry run' : 'Dry run again'}
            </Button>
            <Button kind="primary" icon="scavenge" href="/scavenge">
              Scavenge
            </Button>
          </>
        }
      />
      {list !== null ? (
        <Whole list={list} report={report} run={run} query={query} />
      ) : error !== null ? (
        <ErrorState error={error} what="The chunk map" onRetry={() => void polled.refresh()} />
      ) : (
        <Skeleton lines={8} />
      )}
    </>
  );
}

function Whole({
  list,
  report,
  run,
  query,
}: {
  readonly list: ChunkList;
  readonly report: DryRunDocument | null;
  readonly run: ReturnType<typeof useRun>;
  readonly query: URLSearchParams;
}) {
  const cells = useMemo(() => cellsOf(list, report), [list, report]);
  // Before anything was counted, what could be removed says nothing.
  const mode = modeOf(query.get('by') ?? (report === null ? 'state' : 'removable'));
  const isTable = query.get('as') === 'table';
  const [offBy, setOffBy] = useState<Readonly<Record<string, ReadonlySet<number>>>>({});
  const off = offBy[mode.name] ?? NONE;
  const [zoom, setZoom] = useState(0);
  const [pointed, setPointed] = useState<number | null>(null);
  const [asked, setAsked] = useState<number | null>(null);
  // By number, since merging takes cells out from among those before it.
  const chosen = useMemo(
    () => Math.max(0, asked === null ? cells.length - 1 : cells.findLastIndex(({ chunk }) => chunk.start <= asked)),
    [cells, asked],
  );
  const counts = useMemo(() => countsOf(cells, mode), [cells, mode]);
  const behind =
    run.progress === null
      ? null
      : filesBehind(run.progress, run.isDry, cells.filter(({ chunk }) => !chunk.isOngoing).length);
  const shown = cells[pointed ?? chosen] ?? cells[chosen];
  if (shown === undefined)
    return (
      <EmptyState icon="chunks" title="No chunks yet">
        The first one is written with the first event.
      </EmptyState>
    );
  const choose = (index: number) => setAsked(cells[index]!.chunk.start);
  const toggle = (bin: number) => {
    const next = new Set(off);
    if (!next.delete(bin)) next.add(bin);
    setOffBy({ ...offBy, [mode.name]: next });
    announce(`${mode.bins[bin]!.label}: ${next.has(bin) ? 'dimmed' : 'shown'}`);
  };
  return (
    <>
      <Totals cells={cells} list={list} report={report} />
      <Card>
        <div class="toolbar map-tools">
          {!isTable && (
            <Choice label="Colour by" options={MODES} value={mode.name} onChange={(name) => setQuery({ by: name })} />
          )}
          <div class="row push">
            {!isTable && cells.length > ZOOM_CHUNKS && (
              <div class="row map-zoom" role="group" aria-label="Cell size">
                <Button
                  kind="quiet"
                  isSmall
                  icon="minus"
                  label="Smaller cells"
                  isDisabled={zoom === 0}
                  onClick={() => setZoom(zoom - 1)}
                />
                <span class="small muted">{ZOOMS[zoom]}×</span>
                <Button
                  kind="quiet"
                  isSmall
                  icon="plus"
                  label="Larger cells"
                  isDisabled={zoom === ZOOMS.length - 1}
                  onClick={() => setZoom(zoom + 1)}
                />
              </div>
            )}
            <Choice
              label="Show as"
              options={[
                { name: 'map', label: 'Map' },
                { name: 'table', label: 'Table' },
              ]}
              value={isTable ? 'table' : 'map'}
              onChange={(name) => setQuery({ as: name === 'map' ? null : name })}
            />
          </div>
        </div>
        {run.scavengeId !== null && (
          <div class="map-run">
            <div class="grow">
              <RunProgress run={run} />
            </div>
            <StopButton run={run} isSmall />
          </div>
        )}
        <div class="map-split">
          <div class="map-side">
            {isTable ? (
              <ChunkTable cells={cells} chosen={chosen} onChoose={choose} />
            ) : (
              <ChunkGrid
                cells={cells}
                mode={mode}
                off={off}
                behind={behind}
                zoom={ZOOMS[zoom]!}
                chosen={chosen}
                onChoose={choose}
                onPoint={setPointed}
              />
            )}
            {!isTable && (
              <>
                <Legend mode={mode} counts={counts} off={off} onToggle={toggle} />
                <p class="small muted">{mode.about}</p>
              </>
            )}
          </div>
          <aside class="map-detail" aria-label="Selected chunk">
            <ChunkDetail cell={shown} chunkSize={list.chunkSize} />
          </aside>
        </div>
      </Card>
    </>
  );
}

function countsOf(cells: readonly Cell[], { bins, binOf }: (typeof MODES)[number]): readonly number[] {
  const counts = bins.map(() => 0);
  for (const cell of cells) counts[binOf(cell, cells)]!++;
  return counts;
}

function Totals({
  cells,
  list,
  report,
}: {
  readonly cells: readonly Cell[];
  readonly list: ChunkList;
  readonly report: DryRunDocument | null;
}) {
  const sums = useMemo(() => sumsOf(cells), [cells]);
  const last = cells.at(-1)!;
  const numbers = last.chunk.end + 1;
  const complete = cells.length - (last.chunk.isOngoing ? 1 : 0);
  return (
    <div class="tiles">
      <Stat
        label={cells.some(({ chunk }) => chunk.isCold) ? 'Log in object storage' : 'Log on disk'}
        value={bytesText(sums.bytes)}
        note={`${countText(cells.length, 'file')}${numbers === cells.length ? '' : ` of ${countText(numbers, 'chunk')}`}`}
      />
      <Stat
        label="Removable"
        value={report === null ? '–' : bytesText(sums.removable)}
        note={
          report === null ? (
            'a dry run counts it'
          ) : (
            <>
              {percentText(sums.bytes === 0 ? 0 : sums.removable / sums.bytes)}, counted{' '}
              <Time at={report.point.effectiveNow} />
            </>
          )
        }
      />
      <Stat
        label="Files scavenged"
        value={numberText(sums.scavenged)}
        note={
          sums.scavenged === 0
            ? 'no file has been rewritten'
            : `of ${numberText(complete)}; the history has what each run reclaimed`
        }
      />
      <Stat
        label="Chunk being written"
        value={last.chunk.isOngoing ? numberText(last.chunk.start) : '–'}
        note={
          last.chunk.isOngoing
            ? `${bytesText(last.chunk.bytes)} of ${bytesText(list.chunkSize)}, ${percentText(last.fill)}`
            : undefined
        }
      />
    </div>
  );
}

function sumsOf(cells: readonly Cell[]) {
  let bytes = 0;
  let removable = 0;
  let scavenged = 0;
  for (const { chunk, counted } of cells) {
    bytes += chunk.bytes;
    removable += Math.max(0, counted?.bytesReclaimable ?? 0);
    if (chunk.isScavenged) scavenged++;
  }
  return { bytes, removable, scavenged };
}
