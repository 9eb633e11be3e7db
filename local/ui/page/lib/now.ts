import { signal } from '@preact/signals';

/** The time for what is shown as "5 minutes ago"; it goes on while the tab is seen. */
export const now = signal(Date.now());

const EVERY_MS = 5_000;

setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, EVERY_MS);
document.addEventListener('visibilitychange', () => {
  now.value = Date.now();
});
