import { usePolled } from '../../api/polled.ts';
import { ViewHead } from '../../parts/card.tsx';
import { Loading } from '../../parts/loading.tsx';

/** How the node is. */
export default function Overview() {
  const info = usePolled<Record<string, unknown>>('/info', 2_000);
  return <><ViewHead title="Overview" /><Loading polled={info}>{(data) => <p>{String(data['dbVersion'])}</p>}</Loading></>;
}
