/**
 * What a browser keeps between visits; browsers that keep nothing (private windows, full storage) forget, and nothing
 * else.
 */

const PREFIX = 'skua.';

export function kept(name: string): string | null {
  try {
    return localStorage.getItem(PREFIX + name);
  } catch {
    return null;
  }
}

/** Null forgets. */
export function keep(name: string, value: string | null): void {
  try {
    if (value === null) localStorage.removeItem(PREFIX + name);
    else localStorage.setItem(PREFIX + name, value);
  } catch {
    // It holds until the page is closed.
  }
}
