import { autoScavengeOn } from './auto-kit.ts';
import { onS3 } from './place.ts';

// A start of the schedule, one that is late, a long run, a pause.
autoScavengeOn(onS3(), { seed: 101, only: (test) => /^(6|31|38|51): /.test(test) });
await import('../../auto-scavenge/scenarios.test.ts');
