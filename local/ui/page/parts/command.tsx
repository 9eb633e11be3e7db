import { breakable } from './name.tsx';
import { CopyButton } from './copy-button.tsx';

/** One line to copy: a command, or an address. */
export function Command({ text, label = 'Copy the command' }: { readonly text: string; readonly label?: string }) {
  return (
    <div class="command">
      <code class="grow break">{breakable(text)}</code>
      <CopyButton text={text} label={label} isSmall={false} />
    </div>
  );
}
