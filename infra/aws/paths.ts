/** Which function answers which paths: the gateway, the functions themselves and the local twin go by it. */

/** First segments of the paths that administrators use. */
export const ADMIN_SEGMENTS: readonly string[] = ['admin', 'users', 'connectors', 'auto-scavenge'];

export type HttpFunctionName = 'webhook' | 'admin' | 'streams';

/** The function that a path belongs to. */
export function functionOf(path: string): HttpFunctionName {
  const [, first = '', rest] = path.split('/', 3);
  if (first === 'webhook' && rest !== undefined) return 'webhook';
  return ADMIN_SEGMENTS.includes(first) ? 'admin' : 'streams';
}
