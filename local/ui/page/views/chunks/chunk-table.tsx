import { Badge } from '../../parts/badge.tsx';
import { Table } from '../../parts/table.tsx';
import type { Column } from '../../parts/table.tsx';
import { bytesText, numberText, percentText } from '../../lib/format.ts';
import type { Cell } from './cells.ts';
import { COLD, numbersOf } from './cells.ts';

const COLUMNS: readonly Column<Cell>[] = [
  {
    name: 'number',
    title: 'Chunk',
    width: '8rem',
    sortBy: ({ index }) => index,
    render: ({ chunk }) => <strong>{numbersOf(chunk)}</strong>,
  },
  { name: 'file', title: 'File', isMinor: true, render: ({ chunk }) => <code>{chunk.file}</code> },
  {
    name: 'state',
    title: 'State',
    width: '14rem',
    sortBy: ({ chunk }) => (chunk.isOngoing ? 2 : chunk.isScavenged ? 1 : 0),
    render: ({ chunk, span }) => (
      <span class="row">
        {chunk.isOngoing && <Badge tone="warn">being written</Badge>}
        {chunk.isScavenged && <Badge tone="accent">scavenged</Badge>}
        {span > 1 && <Badge>merged</Badge>}
        {chunk.isCold && <Badge tone="info">{COLD}</Badge>}
      </span>
    ),
  },
  {
    name: 'size',
    title: 'On disk',
    width: '7rem',
    align: 'end',
    sortBy: ({ chunk }) => chunk.bytes,
    render: ({ chunk }) => bytesText(chunk.bytes),
  },
  {
    name: 'removable',
    title: 'Removable',
    width: '8rem',
    align: 'end',
    isMinor: true,
    sortBy: ({ removable }) => removable,
    render: ({ removable }) => percentText(removable),
  },
  {
    name: 'reclaimable',
    title: 'Would reclaim',
    width: '9rem',
    align: 'end',
    isMinor: true,
    sortBy: ({ counted }) => counted?.bytesReclaimable,
    render: ({ counted }) => (counted === null ? '–' : bytesText(Math.max(0, counted.bytesReclaimable))),
  },
  {
    name: 'weight',
    title: 'Weight',
    width: '7rem',
    align: 'end',
    isMinor: true,
    sortBy: ({ counted }) => counted?.weight,
    render: ({ counted }) => numberText(counted?.weight),
  },
];

/** The same chunks in rows, to be sorted and read. */
export function ChunkTable({
  cells,
  chosen,
  onChoose,
}: {
  readonly cells: readonly Cell[];
  readonly chosen: number;
  readonly onChoose: (index: number) => void;
}) {
  return (
    <Table
      label="Chunk files"
      columns={COLUMNS}
      rows={cells}
      keyOf={({ chunk }) => chunk.start}
      isChosen={({ index }) => index === chosen}
      onOpen={({ index }) => onChoose(index)}
      height="calc(100dvh - 24rem)"
    />
  );
}
