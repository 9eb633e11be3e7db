import { numberText } from '../../lib/format.ts';
import { Bytes, Num } from '../../parts/amount.tsx';
import { Badge, Status } from '../../parts/badge.tsx';
import type { Tone } from '../../parts/badge.tsx';
import { Card } from '../../parts/card.tsx';
import { Name } from '../../parts/name.tsx';
import { Table } from '../../parts/table.tsx';
import type { Column } from '../../parts/table.tsx';
import { Time } from '../../parts/time.tsx';
import type { GossipDocument, MemberDocument } from '../../../../../handlers/documents/node.ts';
import { addressOf, ROLES, WELL } from './member.ts';

/** The members of the cluster, as the node that the page comes from knows them. */
export function Members({ gossip: { members, serverIp, serverPort } }: { readonly gossip: GossipDocument }) {
  const leader = members.find(({ state, isAlive }) => state === 'Leader' && isAlive);
  const end = leader?.writerCheckpoint ?? Math.max(...members.map(({ writerCheckpoint }) => writerCheckpoint));
  const isHere = (member: MemberDocument) =>
    member.httpEndPointIp === serverIp && member.httpEndPointPort === serverPort;
  const columns: readonly Column<MemberDocument>[] = [
    {
      name: 'address',
      title: 'Member',
      width: '28%',
      isName: true,
      render: (member) => (
        <span class="row">
          <span class="mono truncate" title={addressOf(member)}>
            <Name text={addressOf(member)} />
          </span>
          {isHere(member) && <Badge tone="accent">this one</Badge>}
        </span>
      ),
      sortBy: addressOf,
    },
    {
      name: 'state',
      title: 'Role',
      render: (member) => (
        <Status tone={toneOf(member)} isLive={!WELL.has(member.state)}>
          {member.isAlive ? roleOf(member) : 'Not reachable'}
        </Status>
      ),
      sortBy: ({ state }) => state,
    },
    {
      name: 'lag',
      title: 'Behind',
      align: 'end',
      render: (member) =>
        member === leader ? <span class="faint">–</span> : <Lag bytes={end - member.writerCheckpoint} />,
      sortBy: (member) => end - member.writerCheckpoint,
    },
    {
      name: 'writer',
      title: 'Position',
      align: 'end',
      isMinor: true,
      render: ({ writerCheckpoint }) => <Num value={writerCheckpoint} />,
      sortBy: ({ writerCheckpoint }) => writerCheckpoint,
    },
    {
      name: 'epoch',
      title: 'Epoch',
      align: 'end',
      isMinor: true,
      render: ({ epochNumber }) => numberText(epochNumber),
    },
    {
      name: 'priority',
      title: 'Priority',
      align: 'end',
      isMinor: true,
      render: ({ nodePriority }) => numberText(nodePriority),
    },
    { name: 'version', title: 'Version', isMinor: true, render: ({ esVersion }) => esVersion },
    { name: 'heard', title: 'Last heard', isMinor: true, render: ({ timeStamp }) => <Time at={timeStamp} /> },
  ];
  const alive = members.filter(({ isAlive }) => isAlive).length;
  return (
    <Card
      title="Members"
      note={`${alive} of ${members.length} reachable${leader === undefined ? ', no leader' : ''}`}
      isFlush
    >
      <Table label="Members of the cluster" columns={columns} rows={members} keyOf={({ instanceId }) => instanceId} />
    </Card>
  );
}

function roleOf({ state, scavengeId }: MemberDocument): string {
  const role = ROLES[state];
  return scavengeId == null || scavengeId === '' ? role : `${role}, scavenging`;
}

function toneOf({ state, isAlive }: MemberDocument): Tone {
  if (!isAlive) return 'bad';
  return WELL.has(state) ? 'ok' : 'warn';
}

function Lag({ bytes }: { readonly bytes: number }) {
  return bytes <= 0 ? (
    <span class="faint">nothing</span>
  ) : (
    <span title="Distance of the log positions">
      <Bytes value={bytes} />
    </span>
  );
}
