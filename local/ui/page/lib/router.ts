import { computed, signal } from '@preact/signals';
import type { ReadonlySignal } from '@preact/signals';
import { PREFIX } from '../api/prefix.ts';

/** The page's own addresses: paths below `/ui`, which are views, by the History API. */

export const BASE = `${PREFIX}/ui`;

export interface Place {
  /** Behind `/ui`, as it is sent: `/streams/a%2Fb`; `/` for the beginning. */
  readonly path: string;
  readonly query: URLSearchParams;
}

function placeHere(): Place {
  const path = location.pathname.slice(BASE.length).replace(/\/$/, '');
  return { path: path === '' ? '/' : path, query: new URLSearchParams(location.search) };
}

const current = signal<Place>(placeHere());
export const place: ReadonlySignal<Place> = computed(() => current.value);

/** An address of the page. `segments` are encoded, so that any name may be one. */
export function pathTo(...segments: readonly string[]): string {
  return segments.map((segment) => `/${encodeURIComponent(segment)}`).join('') || '/';
}

/** What a link to a path of the page holds in `href`. */
export function hrefOf(path: string): string {
  return path === '/' ? BASE : BASE + path;
}

/** Shows the view of another path, such as `/streams/orders?from=3`. `replace`: without a step in the history. */
export function goTo(path: string, { replace = false } = {}): void {
  history[replace ? 'replaceState' : 'pushState'](null, '', hrefOf(path));
  current.value = placeHere();
}

/**
 * Changes the query of the view that is shown; null takes a parameter away, a list gives it several times. No step in
 * the history: it is the same view.
 */
export function setQuery(changes: Readonly<Record<string, string | readonly string[] | null>>): void {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    query.delete(name);
    for (const each of [value ?? []].flat()) if (each !== '') query.append(name, each);
  }
  const text = query.toString();
  history.replaceState(null, '', location.pathname + (text === '' ? '' : `?${text}`));
  current.value = placeHere();
}

/** The variables of a path by a pattern such as `/streams/:stream`, decoded; null where it does not fit. */
export function match(pattern: string, path: string): Record<string, string> | null {
  const wanted = pattern.split('/');
  const given = path.split('/');
  if (wanted.length !== given.length) return null;
  const params: Record<string, string> = {};
  for (const [i, part] of wanted.entries()) {
    if (!part.startsWith(':')) {
      if (part !== given[i]) return null;
      continue;
    }
    try {
      params[part.slice(1)] = decodeURIComponent(given[i]!);
    } catch {
      return null;
    }
  }
  return params;
}

/** Follows links to own paths in place; all that asks for another tab or a file is left to the browser. */
function followed(event: MouseEvent): void {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey)
    return;
  const link = (event.target as Element | null)?.closest?.('a');
  if (link == null || link.target !== '' || link.hasAttribute('download') || link.origin !== location.origin) return;
  if (link.pathname !== BASE && !link.pathname.startsWith(`${BASE}/`)) return;
  if (link.hash !== '' && link.pathname === location.pathname) return;
  event.preventDefault();
  goTo(link.pathname.slice(BASE.length) + link.search || '/');
}

export function startRouter(): void {
  addEventListener('popstate', () => {
    current.value = placeHere();
  });
  document.addEventListener('click', followed);
}
