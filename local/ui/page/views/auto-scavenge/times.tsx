import { usePolled } from '../../api/polled.ts';
import { ownZone, relativeText, zonedMinutes } from '../../lib/format.ts';
import { now } from '../../lib/now.ts';
import { Skeleton } from '../../parts/loading.tsx';
import type { TimesDocument } from '../../../../../handlers/documents/scavenging.ts';

/** A time that has passed is replaced by the next one within this time. */
const EVERY_MS = 30_000;

/** The next times of the schedule that is in force. */
export function Times({ path }: { readonly path: string }) {
  const polled = usePolled<TimesDocument>(path, EVERY_MS);
  const data = polled.data.value;
  const error = polled.error.value;
  if (data === null)
    return error === null ? (
      <Skeleton lines={5} />
    ) : (
      <p class="muted">The next times can't be computed: {error.message}</p>
    );
  return <TimesList next={data} />;
}

/** Times in the zone of the schedule, and in that of the reader where it is another. */
export function TimesList({ next: { zone, times } }: { readonly next: TimesDocument }) {
  const own = ownZone();
  const inZone = zonedMinutes(zone);
  const isOther = zone !== own;
  const here = zonedMinutes();
  return (
    <div class="times">
      <p class="small muted">
        Next times, in time zone {zone}
        {isOther && <>; below in yours ({own})</>}
      </p>
      <ol>
        {times.map((time) => {
          const ms = Date.parse(time);
          // Until the node is asked again, one of them may have been.
          if (ms <= now.value) return null;
          return (
            <li key={time}>
              <time dateTime={time}>{inZone(ms)}</time>
              <span class="muted">{relativeText(ms, now.value)}</span>
              {isOther && <span class="faint small own">{here(ms)}</span>}
            </li>
          );
        })}
      </ol>
    </div>
  );
}
