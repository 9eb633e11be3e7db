import { lines } from '../../api/response-lines.ts';
import { pagePath } from './event-feed.ts';
import type { Direction, Source } from './event-feed.ts';
import type { LineDocument } from '../../../../../handlers/documents/streams.ts';

/**
 * The beginnings of the data of a page's events, as far as they cost little: where events are large, those behind them
 * have none.
 */

export type Previews = ReadonlyMap<string, string>;

/** Characters of data and metadata after which no more is read. */
const CHARACTERS_MAX = 1_048_576;
const PREVIEW_CHARACTERS = 160;

/** The lines of a page; the loop may be left at any time. */
export function pageLines(
  source: Source,
  at: string,
  direction: Direction,
  count: number,
  signal?: AbortSignal,
): AsyncGenerator<LineDocument[]> {
  const query = new URLSearchParams(
    Object.entries(source.query).flatMap(([name, values]) => [values].flat().map((value) => [name, value])),
  ).toString();
  return lines<LineDocument>(`${pagePath(source, at, direction, count)}${query === '' ? '' : `?${query}`}`, signal, {
    'es-resolvelinktos': String(source.resolvesLinks),
  });
}

/** By the keys of rows. */
export async function readPreviews(
  source: Source,
  at: string,
  direction: Direction,
  count: number,
  signal: AbortSignal,
): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  let characters = 0;
  for await (const some of pageLines(source, at, direction, count, signal)) {
    for (const line of some) {
      characters += (line.data?.length ?? 0) + (line.metaData?.length ?? 0);
      found.set(`${line.positionEventNumber}@${line.positionStreamId}`, previewOf(line));
    }
    if (characters > CHARACTERS_MAX) break;
  }
  return found;
}

function previewOf({ data }: LineDocument): string {
  if (data === null) return '';
  const start = data
    .slice(0, PREVIEW_CHARACTERS * 3)
    .replace(/\s+/g, ' ')
    .slice(0, PREVIEW_CHARACTERS);
  // By way of JSON it is a text of its own: a part of a text keeps all of it in memory.
  return JSON.parse(JSON.stringify(start)) as string;
}
