import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import type { Context, EventBridgeEvent } from 'aws-lambda';
import type { ObjectWorld } from '../../../core/object-log/api.ts';
import { openObjectStore } from '../../../core/object-log/instance.ts';
import { tick } from '../../../core/object-log/tick.ts';
import type { TickReport } from '../../../core/object-log/tick.ts';
import { FilesystemStorage } from '../../fs/filesystem-storage.ts';
import { createSchedule } from '../../schedule.ts';
import { SqliteScavengeStates } from '../../sqlite/scavenge-states.ts';
import { autoScavengeConfig, SELF } from './auto-scavenge.ts';
import { FunctionLog } from './function-log.ts';
import { objectLogOptions, openWorld } from './open-store.ts';
import type { FunctionSettings } from './settings.ts';

/** Milliseconds between the end of a tick's work and that of its function. */
const END_RESERVE_MS = 10_000;

const log = new FunctionLog('info');
let opening: ReturnType<typeof openWorld> | null = null;

/**
 * One slice of everything that a store needs done in the background. It rejects with what went wrong, which an alarm counts; the
 * next tick begins anew either way, and what this one did not put in force is as if it had never been.
 */
export async function handler(_event: Partial<EventBridgeEvent<string, unknown>>, context: Pick<Context, 'awsRequestId' | 'getRemainingTimeInMillis'>): Promise<TickReport> {
  log.requestId = context.awsRequestId;
  opening ??= openWorld(log);
  try {
    const { settings, world } = await opening.catch((error: unknown) => {
      opening = null;
      throw error;
    });
    const leftMs = Math.min(settings.values.TickSeconds * 1_000, context.getRemainingTimeInMillis() - END_RESERVE_MS);
    const report = await tickIn(settings, world, world.clock.monotonicMs() + Math.max(0, leftMs));
    log.info('a tick has ended', { ...report });
    return report;
  } catch (error) {
    log.error('the tick failed', { error });
    throw error;
  }
}

/** A tick in a folder of its own; the platform keeps the folder's disk from call to call, so it is emptied. */
async function tickIn(settings: FunctionSettings, world: ObjectWorld, deadlineMs: number): Promise<TickReport> {
  const { values } = settings;
  const folder = await mkdtemp(path.join(tmpdir(), 'skua-tick-'));
  try {
    const scratch = new FilesystemStorage({ root: folder });
    return await tick({
      world, scratch, deadlineMs, options: objectLogOptions(settings), open: openObjectStore, scavengeStates: new SqliteScavengeStates({ indexRoot: scratch.indexRoot }),
      settings: { scavenge: { historyMaxAgeDays: values.ScavengeHistoryMaxAge, disableMerging: values.DisableScavengeMerging, unsafeIgnoreHardDelete: values.UnsafeIgnoreHardDelete } },
      autoScavenge: { schedule: createSchedule(), self: SELF, config: autoScavengeConfig(settings, world) },
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
