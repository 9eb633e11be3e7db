import type { Handler } from './context.ts';
import { ASK_AGAIN, nodeOf } from './node-of.ts';
import { document } from './reply.ts';

/** GET `/metrics` (http-api.md section 5): the text of Prometheus, or OpenMetrics for those who ask for it. */
export const metrics: Handler = async (call, app) => {
  const { contentType, body } = await nodeOf(call, app).metrics(call.request.headers.get('accept'));
  return document(call, body, contentType, ASK_AGAIN);
};
