import { afterAll, beforeEach } from 'vitest';
import { World } from '../../scavenge/notation-world.ts';
import { runOnObjects } from '../tables-kit.ts';
import { onS3 } from './place.ts';

/** All rows run on objects in memory (tick-tables.test.ts); of every so many one runs on a server. */
const ROWS_APART = 15;
let rows = 0;
const place = onS3();
World.elsewhere = async (world, options) => runOnObjects(world, options, await place.fresh());
beforeEach(({ skip }) => { if (rows++ % ROWS_APART !== 0) skip('It runs on objects in memory; on the server a part of the rows does.'); });
afterAll(() => place.close());

// The rows of tables-runs look at the jobs and checkpoints inside a run, which ticks do not have: those stay on a node.
await import('../../scavenge/tables-records.test.ts');
await import('../../scavenge/tables-emptied.test.ts');
await import('../../scavenge/tables-index.test.ts');
await import('../../scavenge/tables-reads.test.ts');
await import('../../scavenge/tables-history.test.ts');
