import type { ComponentType } from 'preact';
import { Component } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { mayUse, session } from '../api/page-session.ts';
import { announce } from '../lib/announce.ts';
import { place } from '../lib/router.ts';
import { Button } from '../parts/button.tsx';
import { ViewHead } from '../parts/card.tsx';
import { EmptyState } from '../parts/empty-state.tsx';
import { Locked } from '../parts/locked.tsx';
import { viewAt } from '../views.ts';
import type { Found, View, ViewProps } from '../views.ts';

/** The view of the address: loaded when it is first looked at. */
export function Stage() {
  const { path } = place.value;
  const found = viewAt(path);
  const title = found?.view.title ?? 'Nothing here';
  useEffect(() => {
    const name = found === null ? '' : (Object.values(found.params).at(-1) ?? '');
    document.title = `${name === '' ? '' : `${name} · `}${title} · Skua`;
    announce(title);
  }, [path]);

  if (found === null)
    return (
      <div class="stage">
        <EmptyState isWhole icon="search" title="Page not found" action={<Button href="/">Go to the overview</Button>}>
          There is no view at this address. It may have moved, or the address is incomplete.
        </EmptyState>
      </div>
    );
  if (!mayUse(found.view.needs))
    return (
      <div class="stage">
        <ViewHead title={title} />
        <Locked needs={found.view.needs} />
      </div>
    );
  // Another user sees the view from its beginning.
  return <Loaded key={`${found.view.path} ${session.value?.user ?? ''}`} found={found} />;
}

const loaded = new Map<View, ComponentType<ViewProps>>();

function Loaded({ found: { view, params } }: { readonly found: Found }) {
  const [state, setState] = useState<ComponentType<ViewProps> | 'loading' | 'failed'>(
    () => loaded.get(view) ?? 'loading',
  );
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    if (typeof state === 'function') return;
    view.load().then(
      ({ default: made }) => {
        loaded.set(view, made);
        setState(() => made);
      },
      (thrown: unknown) => {
        console.error(thrown);
        setState('failed');
      },
    );
  }, [attempt]);

  if (state === 'loading')
    return (
      <div class="stage" aria-busy="true">
        <span class="hidden-visually">Loading</span>
      </div>
    );
  if (state === 'failed') {
    return (
      <div class="stage">
        <EmptyState
          isWhole
          icon="refresh"
          title="This part of the page can't be loaded"
          action={
            <div class="row">
              <Button onClick={() => location.reload()} kind="primary">
                Load the page again
              </Button>
              <Button onClick={() => setAttempt(attempt + 1)}>Try again</Button>
            </div>
          }
        >
          The node may be unreachable, or it was updated after this page was opened.
        </EmptyState>
      </div>
    );
  }
  const Shown = state;
  return (
    <Guard>
      <div class="stage">
        <Shown params={params} query={place.value.query} />
      </div>
    </Guard>
  );
}

/** A view that fails takes nothing else along. */
class Guard extends Component<{ children: preact.ComponentChildren }, { failed: Error | null }> {
  override state = { failed: null };

  static override getDerivedStateFromError(failed: Error) {
    return { failed };
  }

  override componentDidCatch(failed: Error): void {
    console.error(failed);
  }

  override render() {
    const { failed } = this.state as { failed: Error | null };
    if (failed === null) return this.props.children;
    return (
      <div class="stage">
        <EmptyState
          isWhole
          icon="error"
          title="This view failed"
          action={<Button onClick={() => this.setState({ failed: null })}>Reload this view</Button>}
        >
          This is a bug in the page: {failed.message}
        </EmptyState>
      </div>
    );
  }
}
