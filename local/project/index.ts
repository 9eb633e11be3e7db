/** `skua/project`: models that are made of events, in order and exactly once. */
import type { RecordedEvent } from '../event-store/api.ts';
import type { EventSource, Projection, ProjectionOptions } from './api.ts';
import { Projecting } from './projection.ts';
import { systemWorld } from './world.ts';

export type * from './api.ts';
export { elsewhere, type Places } from './elsewhere.ts';
export { memory, type MemoryModel } from './memory.ts';
export { SkuaError } from '../../core/base/errors.ts';
export { isSkuaError } from '../event-store/store-errors.ts';

/**
 * Makes a projection, which does nothing until `run` or `catchUp` is called.
 *
 * @throws `bad_option`.
 *
 * @example
 * const totals = memory(() => new Map<string, number>());
 * const projection = project(store, {
 *   name: 'totals',
 *   filter: { category: 'order' },
 *   store: totals,
 *   on: { Paid: (state, event) => void state.set(event.stream, event.version) },
 * });
 * await projection.run({ signal });
 */
export function project<Tx, Event extends RecordedEvent = RecordedEvent>(
  store: EventSource<Event>,
  options: ProjectionOptions<Tx, Event>,
): Projection {
  return new Projecting(store, options, systemWorld);
}
