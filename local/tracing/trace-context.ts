import { createTraceState, ROOT_CONTEXT, trace } from '@opentelemetry/api';
import type { Context } from '@opentelemetry/api';

/** `traceparent` of W3C Trace Context, level 1; later versions may have more behind it. */
const TRACEPARENT = /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?$/;
const LENGTH_MAX = 512;

/** The trace that a request belongs to by its headers; a new one without them, and where they are malformed. */
export function contextOf(headers: Pick<Headers, 'get'>): Context {
  const parent = headers.get('traceparent');
  if (parent === null || parent.length > LENGTH_MAX) return ROOT_CONTEXT;
  const match = TRACEPARENT.exec(parent.trim());
  if (match === null || (match[1] === '00' && parent.trim().length !== 55)) return ROOT_CONTEXT;
  const state = headers.get('tracestate');
  return trace.setSpanContext(ROOT_CONTEXT, {
    traceId: match[2]!, spanId: match[3]!, traceFlags: Number.parseInt(match[4]!, 16) & 1, isRemote: true,
    ...(state !== null && state.length <= LENGTH_MAX && { traceState: createTraceState(state) }),
  });
}
