import { usePolled } from '../../api/polled.ts';
import { Badge, Status } from '../../parts/badge.tsx';
import { Notice } from '../../parts/empty-state.tsx';
import { Name } from '../../parts/name.tsx';
import { Table } from '../../parts/table.tsx';
import type { Column } from '../../parts/table.tsx';
import { Time } from '../../parts/time.tsx';
import { addressOf } from '../overview/member.ts';
import { RESULT_TONES } from '../scavenge/results.tsx';
import type { NodeOutcome } from '../../../../../core/auto-scavenge/api.ts';
import type { GossipDocument } from '../../../../../handlers/documents/node.ts';

const MEMBERS_EVERY_MS = 2_000;

const STATES: Readonly<Record<string, string>> = { waiting: 'waiting', running: 'scavenging', completed: 'done' };

/** One cycle over the members: which one is scavenged, which were, with what result, and which wait. */
export function Cycle({
  at,
  what,
  id,
  nodes,
  isLive,
}: {
  readonly at: string;
  readonly what: 'started' | 'ended';
  readonly id: string;
  readonly nodes: readonly NodeOutcome[];
  readonly isLive: boolean;
}) {
  const gossip = usePolled<GossipDocument>(isLive ? '/gossip' : null, MEMBERS_EVERY_MS).data.value;
  const isAway = ({ node, state }: NodeOutcome) =>
    state !== 'completed' && gossip?.members.some((member) => !member.isAlive && addressOf(member) === node) === true;
  const done = nodes.filter(({ state }) => state === 'completed').length;
  const columns: readonly Column<NodeOutcome>[] = [
    { name: 'node', title: 'Member', width: '40%', isName: true, render: NodeName },
    {
      name: 'state',
      title: 'State',
      render: (outcome) => {
        if (isAway(outcome)) return <Status tone="bad">not reachable</Status>;
        const { state } = outcome;
        return (
          <Status
            tone={state === 'running' ? 'accent' : state === 'completed' ? 'ok' : 'plain'}
            isLive={isLive && state === 'running'}
          >
            {STATES[state] ?? state}
          </Status>
        );
      },
    },
    {
      name: 'result',
      title: 'Result',
      render: ({ result }) =>
        result === null ? <span class="faint">–</span> : <Badge tone={RESULT_TONES[result] ?? 'plain'}>{result}</Badge>,
    },
    {
      name: 'run',
      title: 'Run',
      isMinor: true,
      render: ({ scavengeId }) =>
        scavengeId === null ? (
          <span class="faint">–</span>
        ) : (
          <code class="faint" title={scavengeId}>
            {scavengeId.slice(0, 8)}
          </code>
        ),
    },
  ];
  return (
    <div class="stack">
      <p>
        The cycle {what} <Time at={at} show="exact" />.{' '}
        <span class="muted">
          {done} of {nodes.length} {nodes.length === 1 ? 'member' : 'members'} done.
        </span>
      </p>
      <div class="cycle-steps" aria-hidden="true">
        {nodes.map(({ node, state, result }) => (
          <span key={node} class={state === 'completed' ? (result === 'Success' ? 'ok' : 'bad') : state} />
        ))}
      </div>
      {nodes.some(isAway) && (
        <Notice tone="warn" title="A member can't be reached">
          The cycle waits for it. After the time that <code>AutoScavenge:NodeLostAfter</code> allows, its part has
          failed and the cycle goes on.
        </Notice>
      )}
      <div class="card-wide">
        <Table label={`Members of the cycle that ${what}`} columns={columns} rows={nodes} keyOf={({ node }) => node} />
      </div>
      <p class="small faint break">
        Cycle <code>{id}</code>
      </p>
    </div>
  );
}

function NodeName({ node }: NodeOutcome) {
  return (
    <strong class="truncate" title={node}>
      <Name text={node} />
    </strong>
  );
}
