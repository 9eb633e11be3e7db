import { isSkuaError, SkuaError } from '../core/errors.ts';
import type { AutoScavengeContext } from './auto-scavenge-context.ts';
import { corsHeaders } from './cors.ts';
import type { App, Call } from './context.ts';

/** On a request that another member has sent on: whoever gets it must lead, or two members could send it to and fro for ever. */
export const FORWARDED_HEADER = 'Skua-Forwarded';
/** Headers that mean something to the leader; who the caller is was checked here (auto-scavenge.md section 4). */
const SENT_ON = ['accept', 'content-type'] as const;
/** Headers of the leader's answer that the caller needs. */
const PASSED_BACK = ['content-type', 'retry-after'] as const;

/** What this node answers, or the leader in its place. `body` is what was read of the request. */
export async function leaderReply(call: Call, app: App & AutoScavengeContext, body: string | null, answer: () => Promise<Response>): Promise<Response> {
  try {
    return await answer();
  } catch (error) {
    if (!isSkuaError(error, 'not_leader')) throw error;
    const leader = error.data['leader'];
    if (typeof leader !== 'string') throw new SkuaError('no_leader', 'No leader node was found in the cluster', { hint: 'Try again when a leader is elected.' });
    if (app.forwardToLeader === undefined || call.request.headers.has(FORWARDED_HEADER)) throw new SkuaError('not_leader', 'Node is not the leader', { leader, hint: `The leader is ${leader}. Try again, or ask that node.` });
    return passedBack(call, await app.forwardToLeader(requestFor(call, body), leader));
  }
}

/** The body was read here, so the request is made anew. */
function requestFor(call: Call, body: string | null): Request {
  const headers = new Headers({ [FORWARDED_HEADER]: 'true' });
  for (const name of SENT_ON) {
    const value = call.request.headers.get(name);
    if (value !== null) headers.set(name, value);
  }
  return new Request(call.url, { method: call.method, headers, body });
}

/** Status and body as they came; headers of this connection are our own. */
function passedBack(call: Call, { status, statusText, headers: given, body }: Response): Response {
  const headers: Record<string, string> = { ...corsHeaders(call.methods) };
  for (const name of PASSED_BACK) {
    const value = given.get(name);
    if (value !== null) headers[name] = value;
  }
  return new Response(body, { status, statusText, headers });
}
