import type { ComponentChildren } from 'preact';
import { durationText, percentText } from '../lib/format.ts';
import { Dotted } from './dotted.tsx';

/** How far some work is. */
export function Progress({
  label,
  done,
  phase,
  leftMs,
  detail,
  tone = 'accent',
}: {
  readonly label: string;
  /** From 0 to 1; null while it is unknown. */
  readonly done: number | null;
  /** What is being done just now. */
  readonly phase?: string;
  readonly leftMs?: number | null;
  readonly detail?: ComponentChildren;
  readonly tone?: 'accent' | 'ok' | 'warn' | 'bad';
}) {
  const share = done === null ? null : Math.min(1, Math.max(0, done));
  return (
    <div class={`progress ${tone}`}>
      <div class="row spread">
        <span>{phase ?? label}</span>
        <span class="muted nowrap">
          <Dotted
            items={[share === null ? null : percentText(share), leftMs == null ? null : `${durationText(leftMs)} left`]}
          />
        </span>
      </div>
      <div
        class={`bar${share === null ? ' unknown' : ''}`}
        role="progressbar"
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={share === null ? undefined : Math.round(share * 100)}
        aria-valuetext={phase}
      >
        <div style={share === null ? {} : { width: `${share * 100}%` }} />
      </div>
      {detail !== undefined && <div class="small muted">{detail}</div>}
    </div>
  );
}

/** What a whole is made of, in one bar; its parts are named beside it. */
export function Shares({
  label,
  parts,
  total,
  format,
}: {
  readonly label: string;
  readonly parts: readonly { readonly label: string; readonly value: number; readonly series?: number | 'rest' }[];
  readonly total: number;
  readonly format: (value: number) => string;
}) {
  return (
    <div class="shares">
      <div class="shares-bar" aria-hidden="true">
        {parts.map((part, i) => (
          <div
            key={part.label}
            class={`fill-${part.series ?? i + 1}`}
            style={{ width: `${total === 0 ? 0 : (part.value / total) * 100}%` }}
          />
        ))}
      </div>
      <ul aria-label={label}>
        {parts.map((part, i) => (
          <li key={part.label}>
            <span class={`key fill-${part.series ?? i + 1}`} />
            <span class="grow truncate">{part.label}</span>
            <span>{format(part.value)}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}
