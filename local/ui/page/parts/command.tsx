import { breakable } from './name.tsx';
import { CopyButton } from './copy-button.tsx';

/** One line to copy: a command, or an address. */
export function Command({ text, label = 'Copy the command' }: { readonly text: string; readonly label?: string }) {
  // Words, and what stands between them.
  const parts = text.split(/(\s+)/);
  return (
    <div class="command">
      <code class="grow break">
        {parts.length === 1
          ? breakable(text)
          : parts.map((part, i) => (i % 2 === 0 ? <span class="command-word">{breakable(part)}</span> : part))}
      </code>
      <CopyButton text={text} label={label} isSmall={false} />
    </div>
  );
}
