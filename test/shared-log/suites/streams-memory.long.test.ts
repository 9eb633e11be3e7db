import { inMemory } from './place.ts';
import { streamsOn } from './streams-kit.ts';

// What is true of streams on a node is true of them on objects.
streamsOn(inMemory(), { seed: 1 });
await import('../../streams/append-to-streams.test.ts');
await import('../../streams/append.test.ts');
await import('../../streams/expected-version.test.ts');
await import('../../streams/read-all.test.ts');
await import('../../streams/read-stream.test.ts');
await import('../../streams/repeats.test.ts');
await import('../../streams/stream-states.test.ts');
await import('../../streams/subscriptions.test.ts');
await import('../../streams/following.test.ts');
