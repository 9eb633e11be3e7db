import * as os from 'node:os';
import { workerData } from 'node:worker_threads';
import type { LaneSetup } from './digest-lane.ts';
import type { WorkerSetup } from './job-messages.ts';

const setup = workerData as WorkerSetup | LaneSetup;

/** Niceness of a thread that gives way: the lowest priority there is. */
const BACKGROUND_NICENESS = 19;

// Linux has a priority for each thread, and 0 means the calling one; elsewhere it would be the whole process.
if (setup.givesWay && process.platform === 'linux') os.setPriority(0, BACKGROUND_NICENESS);

// Loading the jobs is work already, so it comes only now.
if ('lane' in setup) (await import('./digest-lane.ts')).serveLane(setup);
else await import('./job-loop.ts');
