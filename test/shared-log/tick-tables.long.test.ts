import { World } from '../scavenge/notation-world.ts';
import { runOnObjects } from './tables-kit.ts';

// The tables of the scavenge's specification, with every run on object storage. Those of tables-runs look at the jobs
// and checkpoints inside a run, which ticks do not have: they stay on a node.
World.elsewhere = runOnObjects;
await import('../scavenge/tables-records.test.ts');
await import('../scavenge/tables-emptied.test.ts');
await import('../scavenge/tables-index.test.ts');
await import('../scavenge/tables-reads.test.ts');
