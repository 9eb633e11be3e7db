import type { EmbeddedEntryDocument, PageDocument } from '../../../../../handlers/documents/streams.ts';
import { withoutPrefix } from '../../api/prefix.ts';

/** Pages of a stream as the history of scavenges is read: events with their data as text. */
export type Feed = PageDocument<EmbeddedEntryDocument>;
export type FeedEntry = Pick<EmbeddedEntryDocument, 'eventType' | 'eventNumber' | 'updated' | 'data'>;

/** What an event of the history says; nothing for one that says nothing. */
export function membersOf({ data }: FeedEntry): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(data ?? '');
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

export function textOf(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}

export function numberOf(value: unknown): number | null {
  return typeof value === 'number' ? value : null;
}

/** A time span as the store writes it, `1.02:03:04.5000000`, in milliseconds; null for what is none. */
export function spanMsOf(value: unknown): number | null {
  const match = typeof value === 'string' ? /^(?:(\d+)\.)?(\d+):(\d{2}):(\d{2}(?:\.\d+)?)$/.exec(value) : null;
  if (match === null) return null;
  const [, days = '0', hours, minutes, seconds] = match;
  return (((Number(days) * 24 + Number(hours)) * 60 + Number(minutes)) * 60 + Number(seconds)) * 1_000;
}

/** The path of the page that a feed calls `relation`; null when there is none. */
export function linkOf({ links }: Pick<Feed, 'links'>, relation: string): string | null {
  const found = links.find((link) => link.relation === relation);
  if (found === undefined) return null;
  // Behind a proxy the node may be called otherwise than by the browser: its host is left out.
  const { pathname } = new URL(found.uri, location.origin);
  return `${withoutPrefix(pathname)}?embed=body`;
}
