import { computed, signal } from '@preact/signals';
import { PREFIX } from './prefix.ts';
import { ApiError, errorOf, problemOf } from './problem-text.ts';
import { lost } from './connection-state.ts';
import type { SessionDocument } from '../../../../handlers/documents/users.ts';

/** The user of the page. The node keeps the session; the page sees no more of it than what is here. */

export type Need = 'anyone' | 'authenticated' | 'operators' | 'administrators';

export interface Session extends Pick<SessionDocument, 'user' | 'groups' | 'isOperator' | 'isAdministrator'> {
  /** False: the node runs without security, so everybody may do everything. */
  readonly hasSecurity: boolean;
  /** False: passwords go over the network as they are. */
  readonly isEncrypted: boolean;
}

const ADDRESS = `${PREFIX}/ui/session`;
const NOBODY: Session = {
  user: null,
  groups: [],
  isOperator: false,
  isAdministrator: false,
  hasSecurity: true,
  isEncrypted: true,
};

const known = signal<Session | null>(null);
/** Null until the node has said it. */
export const session = computed(() => known.value);
const failure = signal<ApiError | null>(null);
/** Why it could not be said, while it is not known. */
export const sessionFailure = computed(() => (known.value === null ? failure.value : null));

export function mayUse(need: Need, who: Session | null = known.value): boolean {
  if (need === 'anyone' || who?.hasSecurity === false) return true;
  if (who === null) return false;
  if (need === 'authenticated') return who.user !== null;
  return need === 'operators' ? who.isOperator || who.isAdministrator : who.isAdministrator;
}

/** Asks the node which user the page has. */
export async function loadSession(): Promise<void> {
  try {
    known.value = await asked({ method: 'GET' });
    failure.value = null;
  } catch (thrown) {
    failure.value = errorOf(thrown);
  }
}

/** Rejects with what the node says of it: a wrong password, or too many of them. */
export async function login(user: string, password: string): Promise<Session> {
  known.value = await asked({
    method: 'POST',
    body: JSON.stringify({ user, password }),
    headers: { 'content-type': 'application/json' },
  });
  waiting?.resolve(true);
  waiting = null;
  isAsked.value = false;
  return known.value;
}

export async function logout(): Promise<void> {
  await asked({ method: 'DELETE' }).catch((error: unknown) => {
    // Whatever the node answers: a user who wants to leave is gone from this page.
    if (!(error instanceof ApiError) || error.status === 0) throw error;
  });
  known.value = { ...NOBODY, ...surroundings() };
}

/** Whether the login is to be shown. */
const isAsked = signal(false);
export const isLoginShown = computed(() => isAsked.value);

interface Waiting {
  readonly promise: Promise<boolean>;
  resolve(isIn: boolean): void;
}
let waiting: Waiting | null = null;

/**
 * Shows the login; resolves with whether a user has logged in. Requests that are refused at the same time share one.
 */
export function askToLogin(): Promise<boolean> {
  if (waiting === null) {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    waiting = { promise, resolve };
    isAsked.value = true;
  }
  return waiting.promise;
}

/** The login was closed without a user: requests that wait for it are refused, and the page goes on without a user. */
export function refuseLogin(): void {
  isAsked.value = false;
  if (waiting !== null && known.value !== null) known.value = { ...NOBODY, ...surroundings() };
  waiting?.resolve(false);
  waiting = null;
}

/** What does not depend on the user. */
function surroundings(): Pick<Session, 'hasSecurity' | 'isEncrypted'> {
  const { hasSecurity, isEncrypted } = known.peek() ?? NOBODY;
  return { hasSecurity, isEncrypted };
}

async function asked(init: RequestInit): Promise<Session> {
  let response: Response;
  try {
    response = await fetch(ADDRESS, {
      ...init,
      cache: 'no-store',
      headers: { accept: 'application/json', 'x-requested-with': 'skua', ...init.headers },
    });
  } catch {
    lost();
    throw new ApiError('unreachable', 'The node is not responding.');
  }
  if (!response.ok) throw await problemOf(response);
  if (response.status === 204) return NOBODY;
  const { user, groups, isOperator, isAdministrator, security, encrypted } = (await response.json()) as SessionDocument;
  return { user, groups, isOperator, isAdministrator, hasSecurity: security, isEncrypted: encrypted };
}
