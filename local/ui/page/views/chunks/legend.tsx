import { numberText } from '../../lib/format.ts';
import type { Mode } from './modes.ts';

/** The colours of the map and how many files have each. Switched off, those files step back. */
export function Legend({
  mode,
  counts,
  off,
  onToggle,
}: {
  readonly mode: Mode;
  readonly counts: readonly number[];
  readonly off: ReadonlySet<number>;
  readonly onToggle: (bin: number) => void;
}) {
  return (
    <ul class="map-legend" aria-label={`Colours: ${mode.about}`}>
      {mode.bins.map((bin, i) => (
        <li key={bin.label}>
          <button
            type="button"
            aria-pressed={!off.has(i)}
            disabled={counts[i] === 0}
            title={off.has(i) ? 'Show these' : 'Dim these'}
            onClick={() => onToggle(i)}
          >
            <span class={`map-key ${bin.pattern ?? ''}`} style={{ backgroundColor: `var(${bin.token})` }} />
            {bin.label} <span class="faint">{numberText(counts[i])}</span>
          </button>
        </li>
      ))}
    </ul>
  );
}
