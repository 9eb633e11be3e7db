import type { ComponentChildren } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { goTo, hrefOf } from '../../lib/router.ts';
import { numberText } from '../../lib/format.ts';
import { mayUse } from '../../api/page-session.ts';
import { errorOf } from '../../api/problem-text.ts';
import { Badge } from '../../parts/badge.tsx';
import { Button } from '../../parts/button.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Name } from '../../parts/name.tsx';
import { Table } from '../../parts/table.tsx';
import type { Column } from '../../parts/table.tsx';
import { Time } from '../../parts/time.tsx';
import { toast } from '../../parts/toast.tsx';
import type { Row } from './event-feed.ts';
import { viewOf } from './name-search.ts';
import type { Previews } from './previews.ts';
import { readEvent } from './read-event.ts';
import { RedactDialog } from './redact-dialog.tsx';
import type { LineDocument } from '../../../../../handlers/documents/streams.ts';

/** Events, newest first. `showsStream`: they are of many streams. */
export function EventTable({
  label,
  rows,
  previews,
  fresh,
  chosen = null,
  showsStream = false,
  onRedacted,
  empty,
}: {
  readonly label: string;
  readonly rows: readonly Row[];
  readonly previews: Previews;
  readonly fresh?: ReadonlySet<string>;
  /** The number that was asked for. */
  readonly chosen?: number | null;
  readonly showsStream?: boolean;
  /** One of them reads as empty from now on. */
  readonly onRedacted: () => void;
  readonly empty?: ComponentChildren;
}) {
  const [redacting, setRedacting] = useState<LineDocument | null>(null);
  const isRedactor = mayUse('administrators');
  const columns = useMemo(
    () => [
      ...columnsOf(previews, showsStream),
      ...(isRedactor ? [redactColumn((row) => void lineOf(row).then(setRedacting, failed))] : []),
      WRITTEN,
    ],
    [previews, showsStream, isRedactor],
  );
  return (
    <>
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
      <RedactDialog
        line={redacting}
        onClose={() => setRedacting(null)}
        onDone={(remains) => {
          setRedacting(null);
          toast(remains);
          onRedacted();
        }}
      />
    </>
  );
}

function failed(thrown: unknown): void {
  toast(errorOf(thrown).message, 'bad');
}

/** What is redacted is what a link leads to. */
async function lineOf({ target, stream, number }: Row): Promise<LineDocument> {
  const place = target ?? { stream, number: number! };
  return (await readEvent(place.stream, place.number, false, AbortSignal.timeout(READ_MS_MAX))).line;
}

const READ_MS_MAX = 30_000;

/** On a phone there is no room for it: there the view of an event has it. */
function redactColumn(onRedact: (row: Row) => void): Column<Row> {
  return {
    name: 'redact',
    title: <span class="hidden-visually">Redact</span>,
    width: '3.75rem',
    align: 'end',
    isMinor: true,
    render: (row) =>
      isRedactable(row) && (
        <span class="row-action">
          <Button
            kind="quiet"
            isSmall
            icon="erase"
            label={`Redact event ${row.target?.number ?? row.number}…`}
            onClick={() => onRedact(row)}
          />
        </span>
      ),
  };
}

/** Events of the store's own streams are refused. */
function isRedactable({ stream, number, target, isTargetGone, isRedacted }: Row): boolean {
  return number !== null && !isTargetGone && !isRedacted && !(target?.stream ?? stream).startsWith('$');
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
            width: '24%',
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
      width: showsStream ? 'max(10rem, 13vw)' : 'max(7.5rem, 20vw)',
      render: (row) => <TypeCell row={row} showsStream={showsStream} />,
    },
    {
      name: 'data',
      title: 'Data',
      isMinor: true,
      render: (row) => (row.isRedacted ? <Redacted /> : <Preview text={previewOf(row, previews)} />),
    },
  ];
}

const WRITTEN: Column<Row> = {
  name: 'written',
  title: 'Written',
  width: 'min(11rem, 38vw)',
  align: 'end',
  render: ({ writtenAt }) => (
    <span class="muted">
      <Time at={writtenAt} />
    </span>
  ),
};

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
  row: { stream, type, target, isTargetGone, isRedacted },
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
      {isRedacted && (
        <span class="only-narrow">
          <Redacted />
        </span>
      )}
    </span>
  );
}

/** In place of the data, and on a phone, which shows none, below the type. */
function Redacted() {
  return <Badge title="It reads as empty">redacted</Badge>;
}

function Preview({ text }: { readonly text: string }) {
  return (
    <span class="faint truncate cell" title={text}>
      {/* Within letters of the row's own size, so that all of it stands on one line. */}
      <span class="mono">{text}</span>
    </span>
  );
}

function previewOf({ key, isJson }: Row, previews: Previews): string {
  const preview = previews.get(key);
  if (preview === undefined) return '';
  return preview === '' ? (isJson ? '' : 'binary or text') : preview;
}
