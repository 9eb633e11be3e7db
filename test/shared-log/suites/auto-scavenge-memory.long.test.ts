import { autoScavengeOn } from './auto-kit.ts';
import { inMemory } from './place.ts';

// On objects every tick is another process, and none leads: a start that came while no tick ran is made up for, once.
autoScavengeOn(inMemory(), { seed: 1, only: (test) => !test.startsWith('7: missed starts are skipped') });
await import('../../auto-scavenge/scenarios.test.ts');
