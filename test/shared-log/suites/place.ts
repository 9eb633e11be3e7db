import { MemoryObjects } from '../../support/memory-objects.ts';
import type { ObjectStore } from '../../../core/ports/object-store.ts';
import { openObjects } from '../../../infra/objects/open-objects.ts';
import { type S3ForTests, s3ForTests } from '../../support/s3/s3-for-tests.ts';

/** Where the suites of the streams, of webhooks and of scavenges have their objects. */
export interface Place {
  /** Objects of nobody else. */
  fresh(): Promise<ObjectStore>;
  close(): Promise<void>;
}

export function inMemory(): Place {
  return { fresh: async () => new MemoryObjects(), close: async () => {} };
}

/** A bucket of an S3 server, with a prefix for each who asks. */
export function onS3(): Place {
  let server: Promise<S3ForTests> | null = null;
  const opened: ObjectStore[] = [];
  return {
    fresh: async () => {
      const { place } = await (server ??= s3ForTests());
      const objects = await openObjects(place(`store-${opened.length + 1}`));
      opened.push(objects);
      return objects;
    },
    close: async () => {
      for (const objects of opened) await objects.close();
      await (await server)?.close();
    },
  };
}
