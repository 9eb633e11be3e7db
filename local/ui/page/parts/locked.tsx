import { session } from '../api/page-session.ts';
import type { Need } from '../api/page-session.ts';
import { NEEDS_TEXT } from '../lib/needs-text.ts';
import { EmptyState } from './empty-state.tsx';

/** In place of what the user may not see: which role is lacking, and which users can give it. */
export function Locked({
  needs,
  title = "You don't have permission",
}: {
  readonly needs: Need;
  readonly title?: string;
}) {
  const who = session.value!;
  return (
    <EmptyState icon="lock" title={title}>
      This is for {NEEDS_TEXT[needs]}. You are logged in as <strong>{who.user}</strong>
      {who.groups.length === 0 ? ', a member of no group' : `, a member of ${who.groups.join(', ')}`}. An administrator
      can add you to such a group under Users.
    </EmptyState>
  );
}
