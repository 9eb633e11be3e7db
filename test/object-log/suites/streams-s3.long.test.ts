import { onS3 } from './place.ts';
import { streamsOn } from './streams-kit.ts';

/** What is refused before anything is written, and what runs a second time with other options, runs on objects in memory only. */
const NOT_HERE = [/^what is refused /, /^expected versions, warm /, /^expected versions, cold.* delete to /, /^pages of a stream, warm /, /^repeats, with misses /, /^the remembered ids /, /^many writers /, /^readers beside writers, seed [2-6]/, /^links .*@/];
streamsOn(onS3(), { seed: 101, only: (test) => !NOT_HERE.some((name) => name.test(test.replaceAll(' > ', ' '))) });
await import('../../streams/append-to-streams.test.ts');
await import('../../streams/append.test.ts');
await import('../../streams/expected-version.test.ts');
await import('../../streams/read-all.test.ts');
await import('../../streams/read-stream.test.ts');
await import('../../streams/repeats.test.ts');
await import('../../streams/stream-states.test.ts');
await import('../../streams/subscriptions.test.ts');
await import('../../streams/following.test.ts');
