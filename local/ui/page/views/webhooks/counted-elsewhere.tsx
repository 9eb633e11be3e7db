import { overview } from '../../api/overview-client.ts';
import { Notice } from '../../parts/empty-state.tsx';

/** The calls of a connector are counted where they are answered: at the leader. */
export function CountedElsewhere() {
  const node = overview().data.value?.node;
  if (node === undefined || !node.isMember || node.state === 'Leader') return null;
  return (
    <Notice title="This member does not lead">
      Calls are answered and counted by the member that leads, whose page shows them. Here are those that this member
      answered while it led.
    </Notice>
  );
}
