import { useMemo, useState } from 'preact/hooks';
import type { ViewProps } from '../../views.ts';
import { goTo, setQuery } from '../../lib/router.ts';
import { Badge } from '../../parts/badge.tsx';
import { Button } from '../../parts/button.tsx';
import { ViewHead } from '../../parts/card.tsx';
import { EmptyState } from '../../parts/empty-state.tsx';
import { Menu } from '../../parts/menu.tsx';
import { Name } from '../../parts/name.tsx';
import { Tabs } from '../../parts/tabs.tsx';
import { AppendDialog } from './append-dialog.tsx';
import { DeleteDialog } from './delete-dialog.tsx';
import { Metadata } from './metadata.tsx';
import { isIndex, isMetastream, isReachable, isSystem, viewOf } from './name-search.ts';
import { StreamEvents } from './stream-events.tsx';
import { mayDo, useStreamState } from './use-stream-state.ts';
import { toast } from '../../parts/toast.tsx';

const TABS = [
  { name: 'events', label: 'Events' },
  { name: 'metadata', label: 'Metadata and access' },
] as const;

/** One stream: its events, what limits it, and which users may do what with it. */
export default function Stream({ params, query }: ViewProps) {
  const stream = params['stream']!;
  // Another name is another stream from the beginning.
  return isReachable(stream) ? <Shown key={stream} stream={stream} query={query} /> : <Unreachable stream={stream} />;
}

function Shown({ stream, query }: { readonly stream: string; readonly query: URLSearchParams }) {
  const [opened, setOpened] = useState<'append' | 'delete' | null>(null);
  /** Counts what was done here that the table does not hear of by itself. */
  const [changes, setChanges] = useState(0);
  const isMeta = isMetastream(stream);
  const tab = query.get('tab') === 'metadata' && !isMeta ? 'metadata' : 'events';
  const close = () => setOpened(null);
  /** Another moment in which it may have been deleted, or brought back. */
  const [turns, setTurns] = useState(0);
  const state = useStreamState(isMeta ? null : stream, `${changes} ${turns} ${tab}`);
  const others = useMemo(
    () => [
      ...(isMeta
        ? [{ label: 'Go to its stream', icon: 'streams' as const, onSelect: () => goTo(viewOf(stream.slice(2))) }]
        : [{ label: 'Show metadata stream', icon: 'streams' as const, onSelect: () => goTo(viewOf(`$$${stream}`)) }]),
      ...(!isMeta && mayDo('delete', stream, state)
        ? [{ label: 'Delete…', icon: 'trash' as const, isDanger: true, onSelect: () => setOpened('delete') }]
        : []),
    ],
    [stream, state],
  );
  return (
    <>
      <ViewHead
        title={
          <span class="stream-title" title={stream}>
            <Name text={stream} isWhole />
          </span>
        }
        actions={
          <>
            {!isMeta && !isIndex(stream) && mayDo('write', stream, state) && (
              <Button icon="plus" onClick={() => setOpened('append')}>
                Append
              </Button>
            )}
            <Menu label="More for this stream" items={others} />
          </>
        }
      >
        {state?.deleted != null && <Badge tone="warn">{state.deleted === 'hard' ? 'hard-deleted' : 'deleted'}</Badge>}
        {isSystem(stream) && <Badge tone="info">{isMeta ? 'metadata' : 'system'}</Badge>}
      </ViewHead>
      {isMeta ? (
        <StreamEvents stream={stream} query={query} changes={changes} />
      ) : (
        <Tabs
          label="Parts of the stream"
          tabs={TABS}
          current={tab}
          onChange={(name) => setQuery({ tab: name === 'events' ? null : name })}
        >
          {tab === 'events' ? (
            <StreamEvents
              stream={stream}
              query={query}
              changes={changes}
              isDeleted={state?.deleted === 'soft'}
              onTurn={() => setTurns((last) => last + 1)}
            />
          ) : (
            <Metadata stream={stream} />
          )}
        </Tabs>
      )}
      <AppendDialog
        stream={stream}
        isOpen={opened === 'append'}
        onClose={close}
        onDone={(number) => {
          close();
          setChanges(changes + 1);
          toast(`Event ${number} was appended`);
        }}
      />
      <DeleteDialog
        stream={stream}
        isOpen={opened === 'delete'}
        onClose={close}
        onDone={(kind) => {
          close();
          setChanges(changes + 1);
          toast(kind === 'hard' ? 'The stream is hard-deleted' : 'The stream is deleted');
        }}
      />
    </>
  );
}

function Unreachable({ stream }: { readonly stream: string }) {
  return (
    <EmptyState
      icon="streams"
      title="This name has no address"
      action={<Button href="/streams">Go to the streams</Button>}
    >
      Browsers take “{stream}” in an address for a folder and drop it, so this stream can't be read over HTTP. gRPC
      clients can read it.
    </EmptyState>
  );
}
