import { Button } from '../../parts/button.tsx';

/** Back and forth through what is too long for one page. Null: there is nothing in that direction. */
export function Pager({
  onNewest,
  onNewer,
  onOlder,
  onOldest,
}: {
  readonly onNewest: (() => void) | null;
  readonly onNewer: (() => void) | null;
  readonly onOlder: (() => void) | null;
  readonly onOldest: (() => void) | null;
}) {
  const step = (label: string, icon: 'first' | 'left' | 'right' | 'last', go: (() => void) | null) => (
    <Button kind="quiet" isSmall icon={icon} label={label} isDisabled={go === null} onClick={() => go?.()} />
  );
  return (
    <div class="row pager" role="group" aria-label="Pages">
      {step('Newest', 'first', onNewest)}
      {step('Newer', 'left', onNewer)}
      {step('Older', 'right', onOlder)}
      {step('Oldest', 'last', onOldest)}
    </div>
  );
}
