import { TOMBSTONE } from '../log/records.ts';
import { decodeText } from '../text.ts';
import type { StoredEvent } from './api.ts';
import { LINK_TYPE } from './names.ts';
import { readVisible } from './read-stream.ts';
import { type StoreContext, viewOf } from './store-context.ts';

/** Link events; disk-format.md section 6.4. */

const AT = 64;
const I64_MAX_TEXT = '9223372036854775807';

/** Where a link points. */
interface LinkTarget {
  readonly number: number;
  readonly stream: string;
}

/** Parses `<number>@<stream>`, split at the first `@`; null when it is no link. */
export function parseLink(data: Uint8Array): LinkTarget | null {
  const split = data.indexOf(AT);
  if (split < 0) return null;
  const text = decodeText(data.subarray(0, split));
  if (!/^[+-]?\d{1,19}$/.test(text)) return null;
  const digits = text.replace(/^[+-]/, '');
  if (digits.length === I64_MAX_TEXT.length && digits > I64_MAX_TEXT) return null;
  return { number: Math.min(Number(text), TOMBSTONE), stream: decodeText(data.subarray(split + 1)) };
}

/** Replaces the links among `events` by what they point to; one level deep. */
export async function resolveLinks(context: StoreContext, events: StoredEvent[]): Promise<void> {
  for (let i = 0; i < events.length; i++) {
    if (events[i]!.type === LINK_TYPE) events[i] = await resolveLink(context, events[i]!);
  }
}

/** The target of a link; the event itself when it is no link, or marked when its target is gone. */
export async function resolveLink(context: StoreContext, event: StoredEvent): Promise<StoredEvent> {
  const link = event.type === LINK_TYPE ? parseLink(event.data) : null;
  if (link === null) return event;
  const target = await readTarget(context, link);
  if (target === null) event.linkTargetMissing = true;
  else target.link = event;
  return target ?? event;
}

async function readTarget(context: StoreContext, link: LinkTarget): Promise<StoredEvent | null> {
  if (link.stream === '' || link.stream === '$$') return null;
  const view = await viewOf(context, link.stream);
  return view.isTombstoned || view.isMissing ? null : readVisible(context, view, link.number);
}
