import type { Handler } from './context.ts';
import { FEED_KINDS, negotiate } from './negotiate.ts';
import { decodeSegment } from './path.ts';
import { backwardPage, countOf } from './streams-read.ts';

/**
 * GET `/streams/$scavenges/{scavengeId}/{event}/{count}`: the events of one run backward, which are kept in the stream
 * `$scavenges-{scavengeId}` (scavenge.md section 2.7). Paging links lead to that stream itself.
 */
export const scavengeHistory: Handler = (call, app) => {
  const { scavenge = '', event = '', count = '' } = call.params;
  const chosen = negotiate(call, FEED_KINDS);
  return backwardPage(call, app, `$scavenges-${decodeSegment(scavenge)}`, event, countOf(count), true, chosen);
};
