import { useState } from 'preact/hooks';
import { usePolled } from '../../api/polled.ts';
import { countText, numberText } from '../../lib/format.ts';
import { Badge } from '../../parts/badge.tsx';
import { Card } from '../../parts/card.tsx';
import { Definitions } from '../../parts/definitions.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { EmptyState } from '../../parts/empty-state.tsx';
import { Loading } from '../../parts/loading.tsx';
import { Table } from '../../parts/table.tsx';
import type { Column } from '../../parts/table.tsx';
import { Time } from '../../parts/time.tsx';
import { adviceOf } from './advice.ts';
import { connectorPath } from './connector-list.ts';
import type { RejectionDocument, RejectionsDocument } from '../../../../../handlers/documents/connectors.ts';

const EVERY_MS = 3_000;
const COUNT = 100;

/** The calls that were refused last, as they come. */
export function Rejections({ id }: { readonly id: string }) {
  const polled = usePolled<RejectionsDocument>(`${connectorPath(id)}/rejections?count=${COUNT}`, EVERY_MS);
  const [open, setOpen] = useState<RejectionDocument | null>(null);
  return (
    <Loading polled={polled} what="Rejections">
      {({ rejections }) => (
        <Card
          title="Rejections"
          isFlush={rejections.length > 0}
          note={rejections.length > 0 ? 'newest first; ten a minute are recorded, the others only counted' : undefined}
        >
          <Table
            label="Rejections"
            columns={COLUMNS}
            rows={rejections}
            keyOf={({ eventNumber }) => eventNumber}
            onOpen={setOpen}
            empty={
              <EmptyState icon="check" title="No call was refused">
                Refused calls appear here within seconds, with the reason and what to do. Senders are not told the
                reason.
              </EmptyState>
            }
          />
          <Dialog title="Refused call" isOpen={open !== null} onClose={() => setOpen(null)}>
            {open !== null && <One rejection={open} />}
          </Dialog>
        </Card>
      )}
    </Loading>
  );
}

const COLUMNS: readonly Column<RejectionDocument>[] = [
  { name: 'time', title: 'When', width: '9rem', isMinor: true, render: ({ time }) => <Time at={time} /> },
  { name: 'status', title: 'Answer', width: '5rem', render: ({ status }) => <Status status={status} /> },
  { name: 'reason', title: 'Reason, and what to do', isLong: true, render: Reason },
  {
    name: 'delivery',
    title: 'Delivery',
    width: '18%',
    isMinor: true,
    isName: true,
    render: ({ deliveryId }) => (
      <span class="truncate muted" title={deliveryId}>
        {deliveryId ?? '–'}
      </span>
    ),
  },
];

/** A note that another client has written may lack its status. */
function Status({ status }: Pick<RejectionDocument, 'status'>) {
  return <Badge tone={status !== null && status >= 500 ? 'bad' : 'warn'}>{status ?? '–'}</Badge>;
}

function Reason({ time, status, reason, suppressed }: RejectionDocument) {
  return (
    <>
      <div class="small faint only-narrow">
        <Time at={time} />
      </div>
      <div class="break">
        {reason}
        {suppressed !== undefined && <span class="faint"> and {countText(suppressed, 'other')} before</span>}
      </div>
      <div class="small muted">{adviceOf(status, reason)}</div>
    </>
  );
}

function One({
  rejection: { time, status, reason, headers, deliveryId, suppressed, eventNumber },
}: {
  readonly rejection: RejectionDocument;
}) {
  return (
    <div class="stack">
      <p class="break">{adviceOf(status, reason) ?? reason}</p>
      <Definitions
        isWide
        items={[
          ['When', <Time at={time} show="exact" />],
          ['Answer', <Status status={status} />],
          ['Reason', <span class="break">{reason}</span>],
          deliveryId === undefined ? null : ['Delivery', <code class="break">{deliveryId}</code>],
          suppressed === undefined ? null : ['Refused before it, and not noted', numberText(suppressed)],
          ['Headers received', headers.length === 0 ? 'none' : <span class="break mono">{headers.join(', ')}</span>],
          ['Number', numberText(eventNumber)],
        ]}
      />
    </div>
  );
}
