import { currentScavenge, dryRunReport, explainStream, lastScavenge, scavengeProgress, startScavenge, stopScavenge } from './admin-scavenge.ts';
import { SCAVENGE_DOCS as DOCS } from './openapi-admin.ts';
import { operation } from './route.ts';
import type { Route } from './route.ts';

const SCAVENGE = '/admin/scavenge';
const STOP = operation('operators', stopScavenge, DOCS.stop);

/** The paths of manual scavenging (http-api.md sections 3.1 to 3.4). */
export const SCAVENGE_ROUTES: readonly Route[] = [
  { path: SCAVENGE, methods: 'POST, OPTIONS', operations: { POST: operation('operators', startScavenge, DOCS.start) } },
  { path: `${SCAVENGE}/current`, methods: 'DELETE, GET, OPTIONS', operations: { GET: operation('operators', currentScavenge, DOCS.current), DELETE: STOP } },
  { path: `${SCAVENGE}/last`, methods: 'GET, OPTIONS', operations: { GET: operation('operators', lastScavenge, DOCS.last) } },
  { path: `${SCAVENGE}/progress`, methods: 'GET, OPTIONS', operations: { GET: operation('operators', scavengeProgress, DOCS.progress) } },
  { path: `${SCAVENGE}/:scavenge`, methods: 'DELETE, OPTIONS', operations: { DELETE: STOP } },
  { path: `${SCAVENGE}/dry-run/:scavenge`, methods: 'GET, OPTIONS', operations: { GET: operation('operators', dryRunReport, DOCS.dryRun) } },
  { path: `${SCAVENGE}/explain/:stream`, methods: 'GET, OPTIONS', operations: { GET: operation('operators', explainStream, DOCS.explain) } },
];
