import type { Route } from './route.ts';

/** The paths of users (http-api.md section 6). */
export const USERS_ROUTES: readonly Route[] = [];
