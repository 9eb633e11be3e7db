import type { ComponentChildren } from 'preact';
import { useMemo } from 'preact/hooks';
import { goTo, hrefOf } from '../../lib/router.ts';
import { numberText } from '../../lib/format.ts';
import { Icon } from '../../parts/icon.tsx';
import { Name } from '../../parts/name.tsx';
import { Table } from '../../parts/table.tsx';
import type { Column } from '../../parts/table.tsx';
import { Time } from '../../parts/time.tsx';
import type { Row } from './event-feed.ts';
import { viewOf } from './name-search.ts';
import type { Previews } from './previews.ts';

/** Events, newest first. `showsStream`: they are of many streams. */
export function EventTable({
  label,
  rows,
  previews,
  fresh,
  chosen = null,
  showsStream = false,
  empty,
}: {
  readonly label: string;
  readonly rows: readonly Row[];
  readonly previews: Previews;
  readonly fresh?: ReadonlySet<string>;
  /** The number that was asked for. */
  readonly chosen?: number | null;
  readonly showsStream?: boolean;
  readonly empty?: ComponentChildren;
}) {
  const columns = useMemo(() => columnsOf(previews, showsStream), [previews, showsStream]);
  return (
    <Table
      label={label}
      columns={columns}
      rows={rows}
      keyOf={({ key }) => key}
      onOpen={open}
      isFixed
      empty={empty}
      isNew={({ key }) => fresh?.has(key) === true}
      isChosen={({ number }) => chosen !== null && number === chosen}
    />
  );
}

function open(row: Row): void {
  if (row.number !== null && row.stream !== '') goTo(viewOf(row.stream, row.number));
}

function columnsOf(previews: Previews, showsStream: boolean): readonly Column<Row>[] {
  return [
    // Of many streams numbers say little, where there is little room.
    {
      name: 'number',
      title: 'Number',
      isMinor: showsStream,
      width: 'min(7rem, 20vw)',
      render: (row) => <NumberCell row={row} />,
    },
    ...(showsStream
      ? [
          {
            name: 'stream',
            title: 'Stream',
            width: '28%',
            isMinor: true,
            isName: true,
            render: ({ stream }: Row) => <StreamLink stream={stream} />,
          },
        ]
      : []),
    {
      name: 'type',
      title: 'Type',
      isName: true,
      width: showsStream ? 'max(10rem, 15vw)' : 'max(7.5rem, 20vw)',
      render: (row) => <TypeCell row={row} showsStream={showsStream} />,
    },
    {
      name: 'data',
      title: 'Data',
      isMinor: true,
      render: (row) => <span class="mono faint truncate cell">{previewOf(row, previews)}</span>,
    },
    {
      name: 'written',
      title: 'Written',
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

function NumberCell({ row: { number, stream } }: { readonly row: Row }) {
  if (number === null) return <span class="faint">end</span>;
  return (
    <a class="mono" href={hrefOf(viewOf(stream, number))}>
      {numberText(number)}
    </a>
  );
}

function StreamLink({ stream }: { readonly stream: string }) {
  return (
    <a class="plain-link truncate cell" href={hrefOf(viewOf(stream))} title={stream}>
      <Name text={stream} />
    </a>
  );
}

/** On a phone the stream stands below the type, so that both are whole. */
function TypeCell({
  row: { stream, type, target, isTargetGone },
  showsStream,
}: {
  readonly row: Row;
  readonly showsStream: boolean;
}) {
  return (
    <span class="row cell type-cell">
      <span class="truncate" title={type}>
        <Name text={type} />
      </span>
      {showsStream && (
        <span class="only-narrow faint small">
          <StreamLink stream={stream} />
        </span>
      )}
      {target !== null && (
        <a
          class="row faint small link-mark truncate"
          href={hrefOf(viewOf(target.stream, target.number))}
          title={`A link to event ${target.number} of ${target.stream}`}
        >
          <Icon name="link" size={14} />
          <span class="truncate">
            {numberText(target.number)}@<Name text={target.stream} />
          </span>
        </a>
      )}
      {isTargetGone && <span class="faint small nowrap">its target is gone</span>}
    </span>
  );
}

function previewOf({ key, isJson }: Row, previews: Previews): string {
  const preview = previews.get(key);
  if (preview === undefined) return '';
  return preview === '' ? (isJson ? '' : 'binary or text') : preview;
}
