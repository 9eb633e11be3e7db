import type { ComponentChildren } from 'preact';
import { NOTHING } from '../lib/format.ts';
import { hrefOf } from '../lib/router.ts';
import { Sparkline } from './sparkline.tsx';

/** A figure at which one looks first. */
export function Stat({
  label,
  value,
  note,
  points,
  tone,
  href,
}: {
  readonly label: string;
  readonly value: ComponentChildren;
  readonly note?: ComponentChildren;
  /** What it was before, oldest first, at even distances; null for what is not known. */
  readonly points?: readonly (number | null)[];
  readonly tone?: 'warn' | 'bad';
  /** A path of the page that says more. */
  readonly href?: string;
}) {
  const inner = (
    <>
      <span class="stat-label">{label}</span>
      <span class={`stat-value${value === NOTHING ? ' faint' : ''}`}>{value}</span>
      {note !== undefined && <span class="stat-note">{note}</span>}
      {points !== undefined && <Sparkline points={points} />}
    </>
  );
  const className = `stat ${tone ?? ''}`;
  return href === undefined ? (
    <div class={className}>{inner}</div>
  ) : (
    <a class={className} href={hrefOf(href)}>
      {inner}
    </a>
  );
}
