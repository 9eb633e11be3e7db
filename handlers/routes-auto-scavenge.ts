import { autoScavengeEnabled, autoScavengeStatus, configureAutoScavenge, pauseAutoScavenge, resumeAutoScavenge } from './auto-scavenge.ts';
import type { Handler } from './context.ts';
import { AUTO_SCAVENGE_DOCS as DOCS } from './openapi-auto-scavenge.ts';
import { operation } from './route.ts';
import type { OperationDoc, Route } from './route.ts';

/** The paths of auto-scavenge (auto-scavenge.md section 3.1). */
export const AUTO_SCAVENGE_ROUTES: readonly Route[] = [
  { path: '/auto-scavenge/enabled', methods: 'GET, OPTIONS', operations: { GET: operation('authenticated', autoScavengeEnabled, DOCS.enabled) } },
  { path: '/auto-scavenge/status', methods: 'GET, OPTIONS', operations: { GET: operation('authenticated', autoScavengeStatus, DOCS.status) } },
  command('pause', pauseAutoScavenge, DOCS.pause),
  command('resume', resumeAutoScavenge, DOCS.resume),
  command('configure', configureAutoScavenge, DOCS.configure),
];

function command(name: string, handler: Handler, doc: OperationDoc): Route {
  return { path: `/auto-scavenge/${name}`, methods: 'POST, OPTIONS', operations: { POST: operation('operators', handler, doc) } };
}
