import { live, welcome } from './health.ts';
import { operation } from './route.ts';
import type { Route } from './route.ts';

/** The paths of health, information and statistics (http-api.md section 4). */
export const NODE_ROUTES: readonly Route[] = [
  { path: '/health/live', methods: 'GET, HEAD, OPTIONS', operations: { GET: operation('probe', live, { summary: 'Whether the node serves' }), HEAD: operation('probe', live, { summary: 'Whether the node serves' }) } },
  { path: '/', methods: 'GET, OPTIONS', operations: { GET: operation('anyone', welcome, { summary: 'Where things are' }) } },
];
