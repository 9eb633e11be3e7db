import { TOMBSTONE } from '../log/records.ts';
import { decodeText } from '../text.ts';
import type { StoredEvent } from './api.ts';
import { LINK_TYPE } from './names.ts';
import type { PageBytes } from './page-bytes.ts';
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

/**
 * Replaces the links among the events of a page by what they point to; one level deep. Where the page has no room for a
 * target it ends before that event, which is returned; null where all have been replaced.
 */
export async function resolveLinks(context: StoreContext, events: StoredEvent[], bytes: PageBytes): Promise<StoredEvent | null> {
  for (let i = 0; i < events.length; i++) {
    const event = events[i]!;
    const isOver = i > 0 && bytes.isOver;
    if (event.type !== LINK_TYPE && !isOver) continue;
    const shown = isOver ? null : await resolveLink(context, event, bytes, i === 0);
    if (shown === null) {
      events.length = i;
      return event;
    }
    events[i] = shown;
  }
  return null;
}

/** The target of a link; the event itself when it is no link, or marked when its target is gone. Null where the page has no room for the target. */
export async function resolveLink(context: StoreContext, event: StoredEvent, bytes: PageBytes, isFirst: boolean): Promise<StoredEvent | null> {
  const link = event.type === LINK_TYPE ? parseLink(event.data) : null;
  if (link === null) return event;
  bytes.checkReader();
  const target = await readTarget(context, link, bytes.limits.hasPayloads);
  if (target === null) event.linkTargetMissing = true;
  else if (!bytes.exchange(target.data.length + target.metadata.length, isFirst)) return null;
  else target.link = event;
  return target ?? event;
}

async function readTarget(context: StoreContext, link: LinkTarget, hasPayload: boolean): Promise<StoredEvent | null> {
  if (link.stream === '' || link.stream === '$$') return null;
  const view = await viewOf(context, link.stream);
  return view.isTombstoned || view.isMissing ? null : readVisible(context, view, link.number, hasPayload);
}
