import { signal } from '@preact/signals';
import { keep, kept } from './kept.ts';

/** `auto`: what the system asks for. */
export type Theme = 'auto' | 'light' | 'dark';

const NAME = 'theme';

function isTheme(value: string | null): value is Theme {
  return value === 'light' || value === 'dark';
}

const first = kept(NAME);
export const theme = signal<Theme>(isTheme(first) ? first : 'auto');
/** Counts how often the colours in force have changed, for what is painted on a canvas. */
export const paintedTheme = signal(0);

export function setTheme(next: Theme): void {
  theme.value = next;
  keep(NAME, next === 'auto' ? null : next);
  applyTheme();
}

export function applyTheme(): void {
  const { dataset } = document.documentElement;
  if (theme.value === 'auto') delete dataset['theme'];
  else dataset['theme'] = theme.value;
  paintedTheme.value++;
}

matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => paintedTheme.value++);

/** The colour that a token has at present, in a form that a canvas takes. */
export function colourOf(token: string): string {
  const probe = document.createElement('span');
  probe.style.color = `var(${token})`;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}
