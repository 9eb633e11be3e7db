import { Bytes } from '../../parts/amount.tsx';

/** What a run won; less than nothing where merged files take more than the ones that they replace. */
export function Reclaimed({ value }: { readonly value: number | null }) {
  return (
    <>
      <strong>
        <Bytes value={value} />
      </strong>
      {value !== null && value < 0 && <span class="faint"> (the files grew)</span>}
    </>
  );
}
