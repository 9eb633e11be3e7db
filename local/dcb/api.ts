import type { DcbEvent } from '@dcb-es/event-store';
import type { EventStore } from '../event-store/api.ts';

export type { EventStore as DcbEventStore } from '@dcb-es/event-store';

/** What is used of a store: one of `skua/embedded`, or whatever else has these methods of it. */
export type DcbSource = Pick<EventStore, 'append' | 'readAll' | 'subscribe'>;

/** What `getDcbEventStore` takes. */
export interface DcbEventStoreOptions {
  /** The stream in which an event lies, by which it is expired, deleted and scavenged. Default: `dcb`. */
  readonly streamOf?: (event: DcbEvent) => string;
}
