import { Card } from '../../parts/card.tsx';
import { EmptyState } from '../../parts/empty-state.tsx';
import { Button } from '../../parts/button.tsx';

/** What is to be done about each reason, by words of it. */
const REMEDIES = [
  { words: /AutoScavenge:Enabled/, todo: 'Take AutoScavenge:Enabled out of the configuration, or set it to true, and start the node again.' },
  { words: /dev mode/, todo: 'Start the node without the option Dev: what is kept for trying out is not scavenged by itself.' },
  { words: /in memory/, todo: 'Start the node without the option MemDb: what is in memory has no files that could be made smaller.' },
  { words: /licen[cs]e/i, todo: 'Auto-scavenge needs a licence that grants it; without any key the built-in one does. Look at Licensing:LicenseKey and Licensing:UseBuiltIn.' },
] as const;

/** Why it is off, and what to do. */
export function Off({ reason }: { readonly reason: string | null }) {
  const todo = REMEDIES.find(({ words }) => reason !== null && words.test(reason))?.todo;
  return (
    <Card>
      <EmptyState icon="clock" title="Auto-scavenge is off on this node" action={<div class="row"><Button href="/scavenge">Scavenge by hand</Button><Button href="/options?q=AutoScavenge">Options</Button></div>}>
        {reason !== null && <p class="break"><strong>{reason}</strong></p>}
        {todo !== undefined && <p>{todo}</p>}
      </EmptyState>
    </Card>
  );
}
