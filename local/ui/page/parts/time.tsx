import { absoluteText, msOf, relativeText } from '../lib/format.ts';
import { now } from '../lib/now.ts';

/** A time: how long ago, and with the pointer over it when; or the other way about. */
export function Time({
  at,
  show = 'relative',
}: {
  readonly at: string | number | null | undefined;
  readonly show?: 'relative' | 'absolute' | 'both';
}) {
  const ms = msOf(at);
  if (ms === null) return <span class="faint">–</span>;
  const when = absoluteText(ms);
  const iso = new Date(ms).toISOString();
  if (show === 'absolute')
    return (
      <time dateTime={iso} title={iso}>
        {when}
      </time>
    );
  const ago = relativeText(ms, now.value);
  return show === 'both' ? (
    <time dateTime={iso} title={iso}>
      {when} <span class="faint">({ago})</span>
    </time>
  ) : (
    <time dateTime={iso} title={`${when} (${iso})`}>
      {ago}
    </time>
  );
}
