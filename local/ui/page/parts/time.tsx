import { absoluteText, msOf, nearText, relativeText } from '../lib/format.ts';
import { now } from '../lib/now.ts';

type Show = 'both' | 'exact' | 'relative' | 'absolute' | 'near';

/**
 * A time: how long ago, and when beside it. `absolute` and `relative` are one of the two, for places where the other
 * stands already, and `near` is the short one of the first; `exact` begins with when, to the second and with its year.
 */
export function Time({ at, show = 'both' }: { readonly at: string | number | null | undefined; readonly show?: Show }) {
  const ms = msOf(at);
  if (ms === null) return <span class="faint">–</span>;
  const iso = new Date(ms).toISOString();
  return (
    <time class={`time ${show}`} dateTime={iso} title={iso}>
      {inWords(ms, show)}
    </time>
  );
}

function inWords(ms: number, show: Show) {
  if (show === 'near') return nearText(ms, now.value);
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
