import type { DryRunChunk, DryRunReport } from '../../core/scavenge/api.ts';
import { coloursFor } from '../cli/colour.ts';
import type { Io } from '../cli/io.ts';
import { line } from '../cli/io.ts';
import { counted, countText, tableLines } from '../cli/table.ts';
import type { Column } from '../cli/table.ts';
import { bytesText } from '../progress.ts';

/** Rows of a table beyond which only a count is shown; `--json` has all. */
const ROWS_MAX = 100;

const COLUMNS: readonly Column[] = [
  { title: 'file', align: 'left' }, { title: 'chunks', align: 'left' }, { title: 'weight', align: 'right' }, { title: 'records', align: 'right' },
  { title: 'removable', align: 'right' }, { title: 'size', align: 'right' }, { title: 'reclaimable', align: 'right' }, { title: 'rewritten', align: 'left' },
];

/** What a scavenge would do, chunk by chunk. Chunks that it would not touch and that hold nothing to remove are left out. */
export function showDryRun({ threshold, chunks, totals }: Pick<DryRunReport, 'threshold' | 'chunks' | 'totals'>, io: Io): void {
  const { bold, dim, green } = coloursFor(io.stdout, io.env);
  const touched = chunks.filter((chunk) => chunk.wouldExecute || chunk.weight > 0 || chunk.discardable > 0);
  if (touched.length > 0) {
    const lines = tableLines(COLUMNS, [...touched.slice(0, ROWS_MAX).map(rowOf), totalRow(totals)]);
    for (const [at, text] of lines.entries()) line(io.stdout, at === 0 || at === lines.length - 1 ? bold(text) : text);
    if (touched.length > ROWS_MAX) line(io.stdout, dim(`${counted(touched.length - ROWS_MAX, 'more chunk')} with something to remove; --json shows all.`));
  }
  const untouched = chunks.length - touched.length;
  if (untouched > 0) line(io.stdout, dim(`${counted(untouched, 'chunk file')} with nothing to remove.`));
  if (touched.length > 0) line(io.stdout);
  const verdict = totals.chunksExecuted === 0 ? 'A scavenge would rewrite nothing'
    : `A scavenge would rewrite ${counted(totals.chunksExecuted, 'chunk file')} of ${countText(totals.chunks)} and give back about ${green(bytesText(totals.bytesReclaimable))} of ${bytesText(totals.bytes)}`;
  line(io.stdout, `${verdict}${threshold > 0 ? ` (threshold ${countText(threshold)}: what lighter chunks hold stays on disk)` : ''}. Nothing was changed.`);
}

function rowOf({ file, start, end, weight, records, discardable, bytes, bytesReclaimable, wouldExecute }: DryRunChunk): string[] {
  return [file, start === end ? String(start) : `${start}-${end}`, countText(weight), countText(records), countText(discardable), bytesText(bytes), bytesText(bytesReclaimable), wouldExecute ? 'yes' : 'no'];
}

function totalRow({ records, discardable, bytes, bytesReclaimable, chunksExecuted, chunks }: DryRunReport['totals']): string[] {
  return ['all', '', '', countText(records), countText(discardable), bytesText(bytes), bytesText(bytesReclaimable), `${countText(chunksExecuted)} of ${countText(chunks)}`];
}
