import { useEffect, useRef, useState } from 'preact/hooks';
import { announce } from '../lib/announce.ts';
import { Button } from './button.tsx';

const SHOWN_MS = 1_500;

/**
 * Copies a text; over plain HTTP from another machine browsers have no clipboard, so that it goes by a selection there.
 */
export function CopyButton({
  text,
  label = 'Copy',
  isSmall = true,
}: {
  readonly text: string | (() => string);
  readonly label?: string;
  readonly isSmall?: boolean;
}) {
  const [isDone, setDone] = useState(false);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  const copy = async () => {
    const value = typeof text === 'string' ? text : text();
    if (!(await toClipboard(value))) {
      announce('Could not copy to the clipboard');
      return;
    }
    announce('Copied');
    setDone(true);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setDone(false), SHOWN_MS);
  };
  return (
    <Button
      kind="quiet"
      icon={isDone ? 'check' : 'copy'}
      label={isDone ? 'Copied' : label}
      isSmall={isSmall}
      onClick={() => void copy()}
    />
  );
}

async function toClipboard(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement('textarea');
    area.value = text;
    area.className = 'hidden-visually';
    // Within a dialog: outside of it nothing can be selected.
    (document.activeElement?.closest('dialog') ?? document.body).append(area);
    area.select();
    const isDone = document.execCommand('copy');
    area.remove();
    return isDone;
  }
}
