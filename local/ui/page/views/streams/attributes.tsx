import { hrefOf } from '../../lib/router.ts';
import { ExactNumber, parseJson } from '../../lib/json.ts';
import { Name } from '../../parts/name.tsx';
import { viewBy } from './conditions.tsx';

/** What an event is found by, as the node reads it from name and metadata. */

const TAGS_MAX = 64;

/** What stands before the first `-`; system streams have none. */
export function categoryOf(stream: string): string | null {
  const end = stream.indexOf('-');
  return stream.startsWith('$') || end === 0 ? null : end < 0 ? stream : stream.slice(0, end);
}

export function tagsOf(metadata: string | null): readonly string[] {
  if (metadata === null || !metadata.includes('$tags')) return [];
  const value = parseJson(metadata);
  if (typeof value !== 'object' || value === null || Array.isArray(value) || value instanceof ExactNumber) return [];
  const tags = (value as Readonly<Record<string, unknown>>)['$tags'];
  if (!Array.isArray(tags)) return [];
  return [...new Set(tags.slice(0, TAGS_MAX).filter((tag): tag is string => typeof tag === 'string' && tag !== ''))];
}

/** All events that have this, too. */
export function FoundBy({ kind, value }: { readonly kind: Parameters<typeof viewBy>[0]; readonly value: string }) {
  return (
    <a class="break" href={hrefOf(viewBy(kind, value))}>
      <Name text={value} isWhole />
    </a>
  );
}
