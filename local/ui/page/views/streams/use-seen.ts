import { useEffect, useState } from 'preact/hooks';

/** Whether the tab is seen: the node is asked nothing for one that is not. */
export function useSeen(): boolean {
  const [isSeen, setSeen] = useState(!document.hidden);
  useEffect(() => {
    const changed = () => setSeen(!document.hidden);
    document.addEventListener('visibilitychange', changed);
    return () => document.removeEventListener('visibilitychange', changed);
  }, []);
  return isSeen;
}
