import { STATUS } from '../../handlers/grpc/call.ts';
import type { Ending } from '../../handlers/grpc/call.ts';

/** A call, as seen by the code that counts, logs and traces calls. */
export interface WatchedCall {
  readonly path: string;
  readonly request: Request;
  /** Messages so far. */
  readonly received: number;
  readonly sent: number;
}

/**
 * Is told of each call as it begins; what it returns is told of the end: how the client was told that the call ended,
 * null where it went away before.
 */
export type CallWatch = (call: WatchedCall) => (ending: Ending | null) => void;

/** The status of a call that ended so, also where the client makes it of that of HTTP or of its own going away. */
export function statusOf(ending: Ending | null): number {
  if (ending === null) return STATUS.cancelled;
  return 'status' in ending ? ending.status : STATUS.unimplemented;
}
