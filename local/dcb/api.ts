import type { DcbEvent } from '@dcb-es/event-store';
import type { EventStore } from '../event-store/api.ts';

export type { EventStore as DcbEventStore } from '@dcb-es/event-store';

/** What is used of a store: every `EventStore` has it. */
export type DcbSource = Pick<EventStore, 'append' | 'readAll' | 'subscribe'>;

/** What `getDcbEventStore` takes. */
export interface DcbEventStoreOptions {
  /** The stream in which an event lies, by which it is expired, deleted and scavenged. Default: `dcb`. */
  readonly streamOf?: (event: DcbEvent) => string;
}
