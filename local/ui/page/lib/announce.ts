import { signal } from '@preact/signals';

/** What screen readers are told next, by the live region of the shell. */
export const announcement = signal('');

export function announce(text: string): void {
  // The same words again are told again: a region tells only what has changed.
  announcement.value = announcement.peek() === text ? `${text}\u00a0` : text;
}
