import { Card } from '../../parts/card.tsx';
import { EmptyState } from '../../parts/empty-state.tsx';
import { Button } from '../../parts/button.tsx';

/** What is to be done about each reason, by words of it. */
const REMEDIES = [
  {
    words: /AutoScavenge:Enabled/,
    todo: 'Remove AutoScavenge:Enabled from the configuration, or set it to true, and restart the node.',
  },
  {
    words: /dev mode/,
    todo: "Restart the node without the option Dev: in dev mode scavenges don't start automatically.",
  },
  {
    words: /in memory/,
    todo: 'Restart the node without the option MemDb: an in-memory database has no files to shrink.',
  },
  {
    words: /licen[cs]e/i,
    todo: 'Auto-scavenge needs a licence that includes it; the built-in one does, and applies when no key is set. Check Licensing:LicenseKey and Licensing:UseBuiltIn.',
  },
] as const;

/** Why it is off, and what to do. */
export function Off({ reason }: { readonly reason: string | null }) {
  const todo = REMEDIES.find(({ words }) => reason !== null && words.test(reason))?.todo;
  return (
    <Card>
      <EmptyState
        icon="clock"
        title="Auto-scavenge is off on this node"
        action={
          <div class="row">
            <Button href="/scavenge">Scavenge by hand</Button>
            <Button href="/options?q=AutoScavenge">Options</Button>
          </div>
        }
      >
        {reason !== null && (
          <p class="break">
            <strong>{reason}</strong>
          </p>
        )}
        {todo !== undefined && <p>{todo}</p>}
      </EmptyState>
    </Card>
  );
}
