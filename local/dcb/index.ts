export { getDcbEventStore } from './dcb-event-store.ts';
export type * from './api.ts';
