import { pathTo } from '../../lib/router.ts';

/** Where the stream of a name is found: in the page, and at the node. */

export const ALL = '$all';

export function isSystem(stream: string): boolean {
  return stream.startsWith('$');
}

export function isMetastream(stream: string): boolean {
  return stream.startsWith('$$');
}

/** Those of the indexes, which no HTTP client can read, and nobody can append to. */
export function isIndex(stream: string): boolean {
  return stream.startsWith('$idx-');
}

/** Browsers take these two for folders, however they are written, and text with half a character has no address. */
export function isReachable(stream: string): boolean {
  return stream !== '' && stream !== '.' && stream !== '..' && stream.isWellFormed();
}

/** The view of a stream, or of one event of it. */
export function viewOf(stream: string, event?: number): string {
  if (stream === ALL && event === undefined) return '/all';
  return event === undefined ? pathTo('streams', stream) : pathTo('streams', stream, String(event));
}

/** The stream at the node, followed by what belongs to it. */
export function addressOf(stream: string, ...rest: readonly (string | number)[]): string {
  return ['/streams', encodeURIComponent(stream), ...rest].join('/');
}
