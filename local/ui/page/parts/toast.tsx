import { signal } from '@preact/signals';
import { Icon } from './icon.tsx';

interface Shown {
  readonly id: number;
  readonly text: string;
  readonly tone: 'ok' | 'bad' | 'info';
}

const shown = signal<readonly Shown[]>([]);
let last = 0;
/** Long enough to be read; errors stay until they are closed. */
const STAY_MS = 6_000;
const SHOWN_MAX = 4;

/** Says in passing what has been done. What the user has to act on belongs into the view. */
export function toast(text: string, tone: Shown['tone'] = 'ok'): void {
  const id = ++last;
  shown.value = [...shown.peek(), { id, text, tone }].slice(-SHOWN_MAX);
  if (tone !== 'bad') setTimeout(() => close(id), STAY_MS);
}

function close(id: number): void {
  shown.value = shown.peek().filter((one) => one.id !== id);
}

/** What lies outside an open dialog is under its scrim, and takes no clicks: the dialog in front shows them itself. */
export function Toasts({ isHere }: { readonly isHere: boolean }) {
  return (
    <div class="toasts" role="log" aria-live="polite" aria-label="Messages">
      {(isHere ? shown.value : []).map(({ id, text, tone }) => (
        <div key={id} class={`toast ${tone}`}>
          <Icon name={tone === 'ok' ? 'check' : tone === 'bad' ? 'error' : 'info'} />
          <span class="grow break">{text}</span>
          <button type="button" class="icon-button" aria-label="Close" onClick={() => close(id)}>
            <Icon name="close" size={16} />
          </button>
        </div>
      ))}
    </div>
  );
}
