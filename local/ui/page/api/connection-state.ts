import { computed, signal } from '@preact/signals';
import { PREFIX } from './prefix.ts';

/**
 * Whether the node answers. One request that fails is enough to ask it until it answers again; then all that polls goes
 * on.
 */

export type ConnectionState = 'ok' | 'gone' | 'starting';

const state = signal<ConnectionState>('ok');
/** What a node that starts says of itself: `replaying the log`, and how far it is, from 0 to 1. */
const startUp = signal<{ readonly phase: string; readonly done: number | null } | null>(null);
const times = signal(0);

export const connection = computed(() => state.value);
export const startingUp = computed(() => startUp.value);
/** Counts how often the node came back. */
export const returns = computed(() => times.value);

const FIRST_WAIT_MS = 500;
const WAIT_MS_MAX = 4_000;
const ANSWER_MS_MAX = 4_000;

let isAsking = false;

/** A request did not reach the node. */
export function lost(): void {
  if (isAsking) return;
  isAsking = true;
  state.value = 'gone';
  void askUntilThere();
}

async function askUntilThere(): Promise<void> {
  for (let wait = FIRST_WAIT_MS; ; wait = Math.min(wait * 1.5, WAIT_MS_MAX)) {
    await new Promise((resolve) => setTimeout(resolve, wait));
    const found = await ask();
    startUp.value = found.startUp;
    if (found.state === 'ok') break;
    state.value = found.state;
  }
  isAsking = false;
  state.value = 'ok';
  times.value++;
}

async function ask(): Promise<{
  readonly state: ConnectionState;
  readonly startUp: { readonly phase: string; readonly done: number | null } | null;
}> {
  try {
    const response = await fetch(`${PREFIX}/health/ready`, {
      cache: 'no-store',
      signal: AbortSignal.timeout(ANSWER_MS_MAX),
    });
    if (response.ok) return { state: 'ok', startUp: null };
    const body = (await response.json()) as Record<string, unknown>;
    if (body['status'] !== 'starting') return { state: 'gone', startUp: null };
    const { phase, bytesDone, bytesTotal } = body;
    const share =
      typeof bytesDone === 'number' && typeof bytesTotal === 'number' && bytesTotal > 0 ? bytesDone / bytesTotal : null;
    return {
      state: 'starting',
      startUp: { phase: typeof phase === 'string' ? phase.replaceAll('-', ' ') : 'starting', done: share },
    };
  } catch {
    return { state: 'gone', startUp: null };
  }
}
