import type { NodeWarning } from '../../../../../handlers/documents/node.ts';
import { mayUse } from '../../api/page-session.ts';
import { Button } from '../../parts/button.tsx';
import { Notice } from '../../parts/empty-state.tsx';
import { menuViewAt } from '../../views.ts';

const TONES = { error: 'bad', warning: 'warn', info: 'info' } as const;

/** What should be done, worst first. */
export function Warnings({ warnings }: { readonly warnings: readonly NodeWarning[] }) {
  if (warnings.length === 0) return null;
  const order = ['error', 'warning', 'info'];
  return (
    <ul class="stack tight" aria-label="Warnings">
      {[...warnings]
        .sort((one, other) => order.indexOf(one.severity) - order.indexOf(other.severity))
        .map((warning) => {
          const view = warning.view === 'overview' ? null : menuViewAt(`/${warning.view}`);
          return (
            <li key={`${warning.code} ${warning.message}`}>
              <Notice
                tone={TONES[warning.severity]}
                title={warning.message}
                action={
                  view !== null &&
                  mayUse(view.needs) && (
                    <Button href={view.path} isSmall>
                      {view.title}
                    </Button>
                  )
                }
              >
                {withCode(warning.todo)}
              </Notice>
            </li>
          );
        })}
    </ul>
  );
}

/** A text in which what is to be typed stands between backticks. */
function withCode(text: string) {
  return text.split('`').map((part, i) => (i % 2 === 0 ? part : <code key={i}>{part}</code>));
}
