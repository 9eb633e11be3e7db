import type { Route } from './route.ts';

/** The paths of node administration (http-api.md section 3.6). */
export const ADMIN_ROUTES: readonly Route[] = [];
