import { CopyButton } from './copy-button.tsx';
import { Name } from './name.tsx';

/** A name that is to be typed, or pasted, before something is done that can't be undone. */
export function TypedName({ text }: { readonly text: string }) {
  return (
    <div class="row">
      <code class="typed-name">
        <Name text={text} isWhole />
      </code>
      <CopyButton text={text} label="Copy the name" />
    </div>
  );
}
