import { bytesText, numberText } from '../lib/format.ts';

/** A size, with the exact number under the pointer. */
export function Bytes({ value }: { readonly value: number | null | undefined }) {
  return (
    <span class="nowrap" title={value == null ? undefined : `${numberText(value)} bytes`}>
      {bytesText(value)}
    </span>
  );
}

export function Num({ value }: { readonly value: number | null | undefined }) {
  return <span class="nowrap">{numberText(value)}</span>;
}
