import { useEffect, useState } from 'preact/hooks';
import type { ApiError } from '../../api/problem-text.ts';
import { session } from '../../api/page-session.ts';
import { EmptyState } from '../../parts/empty-state.tsx';
import { RIGHTS, readMetadata, whoText } from './stream-metadata.ts';
import type { Right } from './stream-metadata.ts';
import { ALL, isSystem } from './name-search.ts';

/**
 * Why the user may not do this, as far as the user may know it: the users with the right stand in the stream's
 * metadata, which have a right of their own.
 */
export function Refused({
  stream,
  error,
  right = 'read',
}: {
  readonly stream: string;
  readonly error: ApiError;
  readonly right?: Right;
}) {
  const [list, setList] = useState<string | null>(null);
  const who = session.value!;
  useEffect(() => {
    const ending = new AbortController();
    readMetadata(stream, ending.signal).then(
      ({ acl }) => {
        const names = acl[right];
        setList(
          names === undefined
            ? `Its access list does not set this right, so ${isSystem(stream) ? 'it is for administrators only' : 'the default of the node applies'}.`
            : `Its access list allows ${whoText(names)}.`,
        );
      },
      () => {
        // The list is not for him either.
      },
    );
    return () => ending.abort();
  }, [stream, right]);
  return (
    <EmptyState
      icon="lock"
      title={`You may not ${RIGHTS[right].verb} ${stream === ALL ? 'all events' : 'this stream'}`}
    >
      <p class="break">{error.message}</p>
      <p>
        You are logged in as <strong>{who.user}</strong>
        {who.groups.length === 0 ? ', a member of no group' : `, a member of ${who.groups.join(', ')}`}. {list}{' '}
        Administrators can change this under “Metadata and access”{stream === ALL && ' of the stream $all'}.
      </p>
    </EmptyState>
  );
}
