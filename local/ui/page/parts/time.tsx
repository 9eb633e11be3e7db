import { absoluteText, msOf, nearText, relativeText } from '../lib/format.ts';
import { now } from '../lib/now.ts';

/**
 * A time: how long ago, and when beside it. `absolute` and `relative` are one of the two, for places where the other
 * stands already; `exact` begins with when, to the second and with its year.
 */
export function Time({
  at,
  show = 'both',
}: {
  readonly at: string | number | null | undefined;
  readonly show?: 'both' | 'exact' | 'relative' | 'absolute';
}) {
  const ms = msOf(at);
  if (ms === null) return <span class="faint">–</span>;
  const iso = new Date(ms).toISOString();
  return (
    <time class={`time ${show}`} dateTime={iso} title={iso}>
      {inWords(ms, show)}
    </time>
  );
}

function inWords(ms: number, show: 'both' | 'exact' | 'relative' | 'absolute') {
  if (show === 'absolute') return absoluteText(ms);
  const ago = relativeText(ms, now.value);
  if (show === 'relative') return ago;
  return (
    <>
      <span>{show === 'exact' ? absoluteText(ms) : ago}</span>{' '}
      <span class="faint time-other">{show === 'exact' ? ago : nearText(ms, now.value)}</span>
    </>
  );
}
