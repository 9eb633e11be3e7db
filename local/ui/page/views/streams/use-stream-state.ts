import { useEffect, useState } from 'preact/hooks';
import { getText } from '../../api/page-client.ts';
import { mayUse, session } from '../../api/page-session.ts';
import type { Session } from '../../api/page-session.ts';
import { errorOf } from '../../api/problem-text.ts';
import { addressOf, isSystem } from './name-search.ts';
import { parseMetadata } from './stream-metadata.ts';
import type { AccessList, Right } from './stream-metadata.ts';

/** What a view offers depends on this. */
export interface StreamState {
  readonly deleted: 'soft' | 'hard' | null;
  readonly acl: AccessList;
}

/**
 * Null until it is known. It is read anew whenever `changes` has another value. Metadata that can't be read say
 * nothing: then all is offered, and the node says why it refuses. Streams of metadata have none.
 */
export function useStreamState(stream: string | null, changes: string): StreamState | null {
  const [state, setState] = useState<StreamState | null>(null);
  useEffect(() => {
    if (stream === null) return;
    const ending = new AbortController();
    getText(addressOf(stream, 'metadata'), { signal: ending.signal }).then(
      (text) => {
        const { isDeleted, acl } = parseMetadata(text, 0, null);
        setState({ deleted: isDeleted ? 'soft' : null, acl });
      },
      (thrown: unknown) => {
        if (!ending.signal.aborted)
          setState({ deleted: errorOf(thrown).code === 'stream_deleted' ? 'hard' : null, acl: {} });
      },
    );
    return () => ending.abort();
  }, [stream, changes]);
  return state;
}

/** Whether the user is offered this. The names of a user's groups stand in lists as the user's own does. */
export function mayDo(right: Right, stream: string, state: StreamState | null, who: Session = session.value!): boolean {
  if (state?.deleted === 'hard') return false;
  if (mayUse('administrators', who)) return true;
  if (state === null) return false;
  const names = state.acl[right];
  if (names === undefined) return !isSystem(stream);
  return names.some((name) => name === '$all' || name === who.user || who.groups.includes(name));
}
