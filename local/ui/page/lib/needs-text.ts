import type { Need } from '../api/page-session.ts';

/** Names the users whom a view or a button needs. */
export const NEEDS_TEXT: Readonly<Record<Need, string>> = {
  anyone: 'everybody',
  authenticated: 'users who have logged in',
  operators: 'members of $ops or $admins',
  administrators: 'members of $admins',
};
