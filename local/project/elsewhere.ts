import type { Model } from './api.ts';

/** Keeps where projections are. */
export interface Places {
  /** The text under a name; null where there is none. */
  load(name: string): Promise<string | null>;
  /** Replaces it where it still is `previous`, and says whether it was. */
  save(name: string, text: string, previous: string | null): Promise<boolean>;
}

/**
 * A model that has no transaction with what says where it is: a search index, a mail server, another service. Handlers
 * get `target`, and an event comes again where its handler had done its work and the process ended before that was
 * saved: at least once, so handlers should do no harm twice. After each event its place is saved, unless `batch` says
 * otherwise.
 */
export function elsewhere<Target>(target: Target, places: Places): Model<Target> {
  return {
    batchEvents: 1,
    rollsBack: false,
    load: (name) => places.load(name),
    commit: async (name, previous, work) => {
      if ((await places.load(name)) !== previous) return false;
      return places.save(name, await work(target), previous);
    },
  };
}
