import { parentPort, workerData } from 'node:worker_threads';
import { loadJob } from '../../core/jobs/api.ts';
import { jobAborted, jobUnknown } from '../../core/memory/inline-jobs.ts';
import type { Job, JobContext, JobProgress } from '../../core/ports/jobs.ts';
import { streamHasher } from '../../core/base/stream-hash.ts';
import { systemClock } from '../system-clock.ts';
import { nodeCompression } from '../node-compression.ts';
import { nodeDigests } from '../node-digests.ts';
import { FilesystemStorage } from '../fs/filesystem-storage.ts';
import { systemIds } from '../system-ids.ts';
import { nodeKeys } from '../node-keys.ts';
import { openObjects } from '../objects/open-objects.ts';
import { SqliteScavengeStates } from '../sqlite/scavenge-states.ts';
import { DigestLane } from './digest-lane.ts';
import { ABORT, imageOfError } from './job-messages.ts';
import type { RunMessage, WorkerMessage, WorkerSetup } from './job-messages.ts';
import { background } from '../../core/base/background.ts';

/** Shortest time in milliseconds between two progress messages. */
const PROGRESS_EVERY_MS = 100;
/** Longest time in milliseconds that a sleeping job does not look at its signal. */
const SLEEP_SLICE_MS_MAX = 100;

const setup = workerData as WorkerSetup;
const port = parentPort!;
const storage = new FilesystemStorage({ root: setup.root, indexRoot: setup.indexRoot, isBlocking: setup.isBackground });
// A long job that no request waits for digests beside its work.
const lane = setup.isBackground ? new DigestLane(new URL(setup.workerUrl), setup.givesWay) : null;
const digests = lane?.over(nodeDigests) ?? nodeDigests;
const scavengeStates = new SqliteScavengeStates({ indexRoot: setup.indexRoot });

/** Sends progress at most every PROGRESS_EVERY_MS, and what was held back when the job ends. */
class ProgressThrottle {
  #lastMs = -Infinity;
  #heldBack: JobProgress | null = null;

  report(progress: JobProgress): void {
    const now = performance.now();
    if (now - this.#lastMs < PROGRESS_EVERY_MS) {
      this.#heldBack = progress;
      return;
    }
    this.#lastMs = now;
    this.#heldBack = null;
    send({ kind: 'progress', progress });
  }

  flush(): void {
    if (this.#heldBack !== null) send({ kind: 'progress', progress: this.#heldBack });
  }
}

function send(message: WorkerMessage): void {
  port.postMessage(message);
}

function fail(error: unknown): void {
  const image = imageOfError(error);
  try {
    send({ kind: 'failed', error: image });
  } catch {
    // Data that can't be copied to another thread must not hide the error that carries it.
    send({ kind: 'failed', error: { ...image, data: {} } });
  }
}

/** A job of the core, or of the module that takes its place. */
async function jobOf(name: string): Promise<Job | undefined> {
  return setup.jobsUrl === undefined
    ? loadJob(name)
    : ((await import(setup.jobsUrl)) as { JOBS: Record<string, Job> }).JOBS[name];
}

async function run(message: RunMessage): Promise<void> {
  const throttle = new ProgressThrottle();
  const endWhenAborted = () => {
    if (Atomics.load(setup.signal, 0) === ABORT) throw jobAborted(message.name);
  };
  const context: JobContext = {
    storage,
    digests,
    ids: systemIds,
    hasher: streamHasher,
    scavengeStates,
    backup: {
      keys: nodeKeys,
      compression: nodeCompression,
      openObjects: (location) => openObjects(location, { isBlocking: setup.isBackground }),
    },
    progress: (progress) => throttle.report(progress),
    monotonicMs: () => performance.now(),
    sleep: async (ms, signal) => {
      const endMs = performance.now() + ms;
      for (let leftMs = ms; leftMs > 0 && signal?.aborted !== true; leftMs = endMs - performance.now()) {
        endWhenAborted();
        await systemClock.sleep(Math.min(leftMs, SLEEP_SLICE_MS_MAX), signal);
      }
      endWhenAborted();
    },
    checkpoint: async () => endWhenAborted(),
  };
  try {
    const job = await jobOf(message.name);
    if (job === undefined) throw jobUnknown(message.name);
    const result = await job(message.args as never, context);
    throttle.flush();
    send({ kind: 'done', result });
  } catch (error) {
    fail(error);
  } finally {
    lane?.clear();
  }
}

// The job itself meets a failure.
if (setup.expectedJob !== undefined) jobOf(setup.expectedJob).catch(() => {});

port.on('message', (message: RunMessage) => {
  background(run(message));
});
