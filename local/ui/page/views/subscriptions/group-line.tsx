import { Bytes, Num } from '../../parts/amount.tsx';
import { Badge, Status } from '../../parts/badge.tsx';
import { statusOf } from './groups.ts';
import type { Lag } from './groups.ts';

/** What a row and the heading of a group have in common. */

interface StatusProps {
  readonly status: string;
  readonly consumers: number;
}

export function GroupStatus({ status, consumers }: StatusProps) {
  const { word, tone, title } = statusOf(status, consumers);
  return (
    <span title={title}>
      <Status tone={tone}>{word}</Status>
    </span>
  );
}

export function GroupBadge({ status, consumers }: StatusProps) {
  const { word, tone, title } = statusOf(status, consumers);
  return (
    <Badge tone={tone} title={title}>
      {word}
    </Badge>
  );
}

export function LagText({ lag }: { readonly lag: Lag | null }) {
  if (lag === null) return <span class="faint">–</span>;
  return (
    <>
      {lag.isLeast && <span title="At least: it has not read to the end.">≥&nbsp;</span>}
      {lag.unit === 'bytes' ? <Bytes value={lag.amount} /> : <Num value={lag.amount} />}
    </>
  );
}

export function Parked({ count }: { readonly count: number }) {
  return count === 0 ? (
    <span class="faint">0</span>
  ) : (
    <strong class="parked">
      <Num value={count} />
    </strong>
  );
}
