import { unitText } from './chart.tsx';

/** Of something a second: a dash where nothing is counted; undefined, as long as it is still measured, a bar. */
export function Rate({ value }: { readonly value: number | null | undefined }) {
  if (value === undefined)
    return (
      <span class="coming" aria-busy="true">
        <span class="hidden-visually">Measuring</span>
      </span>
    );
  return value === null ? <span class="faint">–</span> : <>{unitText(value, 'perSecond')}</>;
}
