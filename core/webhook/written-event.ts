import { EVENT_BYTES_MAX } from '../streams/api.ts';
import { encodeText } from '../text.ts';
import { refusalOfRoute } from './routing-contract.ts';

/** What a call becomes in its stream; webhook-source.md part 2, "Written event". */

/** Type of the event where the script returns no schema. */
export const DEFAULT_TYPE = 'WebhookReceived';

/** JSON object of the allowed headers that the call has. */
export function metadataOf(allowedHeaders: readonly string[], headers: ReadonlyMap<string, string>): Uint8Array {
  const members: string[] = [];
  for (const name of allowedHeaders) {
    const value = headers.get(name);
    // A lone surrogate has no UTF-8; JSON escapes it.
    if (value !== undefined) members.push(`${JSON.stringify(name)}:${JSON.stringify(value)}`);
  }
  return encodeText(`{${members.join(',')}}`);
}

/** Why no store would take the event, null when it can be written. */
export function refusalOfEvent(stream: string, schema: string | null, bytes: number): string | null {
  if (stream === '') return 'The script names no stream.';
  if (bytes > EVENT_BYTES_MAX) return `The event would have ${bytes} bytes of data and metadata, and the limit is ${EVENT_BYTES_MAX}.`;
  return refusalOfRoute(stream, schema);
}
