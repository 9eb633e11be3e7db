import { currentScavenge, dryRunReport, explainStream, lastScavenge, scavengeProgress, startScavenge, stopScavenge } from './admin-scavenge.ts';
import { operation } from './route.ts';
import type { Route } from './route.ts';

const SCAVENGE = '/admin/scavenge';
const STOP = operation('operators', stopScavenge, { summary: 'Stop a scavenge' });

/** The paths of manual scavenging (http-api.md sections 3.1 to 3.4). */
export const SCAVENGE_ROUTES: readonly Route[] = [
  { path: SCAVENGE, methods: 'POST, OPTIONS', operations: { POST: operation('operators', startScavenge, { summary: 'Start a scavenge, or a dry run of one' }) } },
  { path: `${SCAVENGE}/current`, methods: 'DELETE, GET, OPTIONS', operations: { GET: operation('operators', currentScavenge, { summary: 'The scavenge that is running' }), DELETE: STOP } },
  { path: `${SCAVENGE}/last`, methods: 'GET, OPTIONS', operations: { GET: operation('operators', lastScavenge, { summary: 'The last scavenge since the start of the node' }) } },
  { path: `${SCAVENGE}/progress`, methods: 'GET, OPTIONS', operations: { GET: operation('operators', scavengeProgress, { summary: 'How far the running scavenge is' }) } },
  { path: `${SCAVENGE}/:scavenge`, methods: 'DELETE, OPTIONS', operations: { DELETE: STOP } },
  { path: `${SCAVENGE}/dry-run/:scavenge`, methods: 'GET, OPTIONS', operations: { GET: operation('operators', dryRunReport, { summary: 'What a scavenge would do' }) } },
  { path: `${SCAVENGE}/explain/:stream`, methods: 'GET, OPTIONS', operations: { GET: operation('operators', explainStream, { summary: 'What a scavenge would remove from a stream, and why' }) } },
];
