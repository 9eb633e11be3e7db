import type { Miss } from '../base/step.ts';
import type { StoredEvent } from './api.ts';
import { type LinkTarget, parseLink } from './format/links.ts';
import { isMetastream, LINK_TYPE } from './format/names.ts';
import type { PageBytes } from '../base/page-bytes.ts';
import { VisibleSearch } from './read-stream.ts';
import { stateOf, type StoreContext } from './store-context.ts';
import { type StreamState, StreamView } from './stream-state.ts';

/** What links point to. */

/** Links of a page whose targets are looked for at the same time, once one of them is not in memory. */
const TARGETS_AHEAD = 16;

/**
 * Replaces the links among the events of a page by what they point to; one level deep. Where the page has no room for a
 * target it ends before that event, which is returned; null where all have been replaced.
 *
 * The targets are taken in order. While one has to be waited for, what the next ones need is loaded into the caches, a
 * block of each file at most: so the page holds no target that it has not counted.
 */
export async function resolveLinks(
  context: StoreContext,
  events: StoredEvent[],
  bytes: PageBytes,
): Promise<StoredEvent | null> {
  const ahead = new Ahead(context, events);
  try {
    for (let i = 0; i < events.length; i++) {
      const event = events[i]!;
      const isOver = i > 0 && bytes.isOver;
      if (event.type !== LINK_TYPE && !isOver) continue;
      const resolving = isOver ? null : resolveNow(context, event, bytes, i === 0, () => ahead.begin(i + 1));
      const shown = resolving instanceof Promise ? await resolving : resolving;
      if (shown === null) {
        events.length = i;
        return event;
      }
      events[i] = shown;
    }
    return null;
  } finally {
    await ahead.ended();
  }
}

/**
 * The target of a link; the event itself when it is no link, or marked when its target is gone. Null where the page has
 * no room for the target.
 */
export async function resolveLink(
  context: StoreContext,
  event: StoredEvent,
  bytes: PageBytes,
  isFirst: boolean,
): Promise<StoredEvent | null> {
  return resolveNow(context, event, bytes, isFirst, null);
}

/**
 * As `resolveLink`, without a promise where the target is in memory. `onMiss` is called each time that it has to be
 * waited for.
 */
function resolveNow(
  context: StoreContext,
  event: StoredEvent,
  bytes: PageBytes,
  isFirst: boolean,
  onMiss: (() => void) | null,
): StoredEvent | null | Promise<StoredEvent | null> {
  const link = event.type === LINK_TYPE ? parseLink(event.data) : null;
  if (link === null) return event;
  bytes.checkReader();
  const search = new TargetSearch(link, bytes.limits.hasPayloads);
  const found = search.step(context);
  return found instanceof Promise ? waited() : shown(found);

  async function waited(): Promise<StoredEvent | null> {
    for (let target: StoredEvent | null | Miss = found; ; target = search.step(context)) {
      if (!(target instanceof Promise)) return shown(target);
      onMiss?.();
      await target;
    }
  }

  function shown(target: StoredEvent | null): StoredEvent | null {
    if (target === null) event.linkTargetMissing = true;
    else if (!bytes.exchange(target.data.length + target.metadata.length, target.stream.length, isFirst)) return null;
    else target.link = event;
    return target ?? event;
  }
}

/**
 * The target of one link, searched in steps: the event, null when there is none for readers, or a miss after which the
 * same step is taken again.
 */
class TargetSearch {
  readonly #link: LinkTarget;
  readonly #hasPayload: boolean;
  #search: VisibleSearch | null = null;
  #isGone = false;

  constructor(link: LinkTarget, hasPayload: boolean) {
    this.#link = link;
    this.#hasPayload = hasPayload;
    this.#isGone = link.stream === '' || link.stream === '$$';
  }

  step(context: StoreContext): StoredEvent | null | Miss {
    return this.#find(context) ?? this.#search?.step(context) ?? null;
  }

  /**
   * Begins to load what `step` will need: a miss after which it is to be called again, null when there is nothing more
   * to begin.
   */
  prepare(context: StoreContext): Miss | null {
    return this.#find(context) ?? this.#search?.prepare(context) ?? null;
  }

  /** Looks at the stream, once. */
  #find(context: StoreContext): Miss | null {
    if (this.#isGone || this.#search !== null) return null;
    const state = stateOf(context, this.#link.stream);
    if (state instanceof Promise)
      return state.then((loaded) => {
        this.#take(loaded);
      });
    this.#take(state);
    return null;
  }

  #take(state: StreamState): void {
    const { stream, number } = this.#link;
    const view = new StreamView(state, isMetastream(stream));
    if (view.isTombstoned || view.isMissing) this.#isGone = true;
    else this.#search = new VisibleSearch(view, number, this.#hasPayload);
  }
}

/** Loads what the targets of the next links need. Errors are met by the read of each target in its turn. */
class Ahead {
  readonly #context: StoreContext;
  readonly #events: readonly StoredEvent[];
  /** Events before this one have been looked at. */
  #at = 0;
  readonly #underWay = new Set<Promise<void>>();

  constructor(context: StoreContext, events: readonly StoredEvent[]) {
    this.#context = context;
    this.#events = events;
  }

  /** The next events from `from` on are needed soon. */
  begin(from: number): void {
    for (
      this.#at = Math.max(this.#at, from);
      this.#at < this.#events.length && this.#at < from + TARGETS_AHEAD && this.#underWay.size < TARGETS_AHEAD;
      this.#at++
    ) {
      const event = this.#events[this.#at]!;
      const link = event.type === LINK_TYPE ? parseLink(event.data) : null;
      if (link === null) continue;
      const loading: Promise<void> = this.#load(new TargetSearch(link, false))
        .catch(() => {})
        .then(() => {
          this.#underWay.delete(loading);
        });
      this.#underWay.add(loading);
    }
  }

  async #load(search: TargetSearch): Promise<void> {
    for (let miss = search.prepare(this.#context); miss !== null; miss = search.prepare(this.#context)) await miss;
  }

  /** Resolves when nothing is being loaded any more. */
  async ended(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.all(this.#underWay);
  }
}
