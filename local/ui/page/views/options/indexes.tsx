import { post } from '../../api/page-client.ts';
import { errorOf } from '../../api/problem-text.ts';
import { usePolled } from '../../api/polled.ts';
import { bytesText, percentText } from '../../lib/format.ts';
import { Num } from '../../parts/amount.tsx';
import { Status } from '../../parts/badge.tsx';
import { Button } from '../../parts/button.tsx';
import { Card } from '../../parts/card.tsx';
import { confirm } from '../../parts/confirm.tsx';
import { Table } from '../../parts/table.tsx';
import type { Column } from '../../parts/table.tsx';
import { toast } from '../../parts/toast.tsx';
import type {
  AttributeIndexDocument,
  AttributeIndexesDocument,
} from '../../../../../handlers/documents/attribute-indexes.ts';

/** The indexes by which events are found by what they are: a setting of the log, and how far this node is. */

const EVERY_MS = 5_000;
type Name = keyof AttributeIndexesDocument['setting'];
const OF: Readonly<Record<Name, string>> = {
  names: 'Categories and event types',
  correlations: 'Correlations ($correlationId)',
  tags: 'Tags ($tags)',
};

interface Line {
  readonly name: Name;
  readonly isOn: boolean;
  /** Null where the node keeps no indexes of its own. */
  readonly index: AttributeIndexDocument | null;
}

export function Indexes() {
  const polled = usePolled<AttributeIndexesDocument>('/admin/indexes', EVERY_MS);
  const found = polled.data.value;
  if (found === null) return null;
  const lines = (Object.keys(OF) as Name[]).map((name): Line => ({
    name,
    isOn: found.setting[name],
    index: found.indexes.find((index) => index.name === name) ?? null,
  }));
  const set = async (name: Name, isOn: boolean) => {
    try {
      await post('/admin/indexes', { [name]: isOn });
      await polled.refresh();
    } catch (thrown) {
      toast(errorOf(thrown).message, 'bad');
    }
  };
  return (
    <Card title="Attribute indexes" note="of the log, for all members" isFlush>
      <Table label="Attribute indexes" columns={columnsOf(set)} rows={lines} keyOf={({ name }) => name} />
    </Card>
  );
}

function columnsOf(set: (name: Name, isOn: boolean) => Promise<void>): readonly Column<Line>[] {
  return [
    { name: 'name', title: 'Index', isLong: true, render: ({ name }) => OF[name] },
    { name: 'state', title: 'State', render: (line) => <State {...line} /> },
    {
      name: 'entries',
      title: 'Entries',
      align: 'end',
      isMinor: true,
      render: ({ isOn, index }) => (isOn && index !== null ? <Num value={index.entries} /> : ''),
    },
    {
      name: 'bytes',
      title: 'On disk',
      align: 'end',
      isMinor: true,
      render: ({ isOn, index }) => (isOn && index !== null ? bytesText(index.tableBytes) : ''),
    },
    {
      name: 'switch',
      title: <span class="hidden-visually">Switch</span>,
      align: 'end',
      render: ({ name, isOn }) => (
        <Button
          isSmall
          label={`Switch ${isOn ? 'off' : 'on'} ${name}`}
          onClick={() => void (isOn ? switchOff(name, set) : set(name, true))}
        >
          {isOn ? 'Switch off' : 'Switch on'}
        </Button>
      ),
    },
  ];
}

async function switchOff(name: Name, set: (name: Name, isOn: boolean) => Promise<void>): Promise<void> {
  const isMeant = await confirm({
    title: 'Switch the index off',
    text: (
      <p>
        {OF[name]}: the index is removed from the disks of all members. Reads find the same events without it, by
        reading the whole log. Switched on again it is built anew.
      </p>
    ),
    action: 'Switch off',
    isDanger: true,
  });
  if (isMeant) await set(name, false);
}

function State({ isOn, index }: Line) {
  if (!isOn) return <Status>off</Status>;
  if (index === null) return <Status tone="ok">on</Status>;
  if (index.state === 'live') return <Status tone="ok">live</Status>;
  const share = percentText(index.logEnd === 0 ? 1 : index.coveredTo / index.logEnd);
  if (index.error !== undefined)
    return (
      <>
        <Status tone="bad">stuck at {share}; retrying</Status>
        <p class="small muted break">{index.error}</p>
      </>
    );
  return (
    <Status tone="info" isLive>
      building, {share}
    </Status>
  );
}
