import type { Context, EventBridgeEvent } from 'aws-lambda';
import type { Repository } from '../../../core/backup/repository/api.ts';
import { openRepository } from '../../../core/backup/repository/repository.ts';
import type { ObjectWorld } from '../../../core/shared-log/api.ts';
import { openObjectStore } from '../../../core/shared-log/shared-log.ts';
import { createScheduler } from '../../../core/shared-log/scheduler/scheduler.ts';
import { tick } from '../../../core/shared-log/tick/tick.ts';
import { TickBackups } from '../../../core/shared-log/backups/backups.ts';
import type { TickReport } from '../../../core/shared-log/tick/tick.ts';
import { SELF } from '../../runtime/scavengers.ts';
import { newTemporaryStorage } from '../../runtime/temporary-storage.ts';
import { nodeCompression } from '../../node-compression.ts';
import { nodeKeys } from '../../node-keys.ts';
import { openObjects } from '../../objects/open-objects.ts';
import { createSchedule } from '../../cron-schedule.ts';
import { autoScavengeConfig, backupKeyOf, scavengeConfig } from './function-settings.ts';
import type { FunctionSettings } from './function-settings.ts';
import { FunctionLog } from './http-function.ts';
import { objectLogOptions, openWorld } from './open-store.ts';

/** Milliseconds between the end of a tick's work and that of its function. */
const END_RESERVE_MS = 10_000;

const log = new FunctionLog('info');
let opening: ReturnType<typeof open> | null = null;

/**
 * One slice of everything that a store needs done in the background. It rejects with what went wrong, which an alarm
 * counts; the next tick begins anew either way, and what this one did not put in force is as if it had never been.
 */
export async function handler(
  _event: Partial<EventBridgeEvent<string, unknown>>,
  context: Pick<Context, 'awsRequestId' | 'getRemainingTimeInMillis'>,
): Promise<TickReport> {
  log.requestId = context.awsRequestId;
  opening ??= open();
  try {
    const { settings, world, backups, autoScavenge } = await opening.catch((error: unknown) => {
      opening = null;
      throw error;
    });
    const leftMs = Math.min(settings.values.TickSeconds * 1_000, context.getRemainingTimeInMillis() - END_RESERVE_MS);
    const report = await tickIn(
      settings,
      world,
      { backups, autoScavenge },
      world.clock.monotonicMs() + Math.max(0, leftMs),
    );
    log.info('a tick has finished', { ...report });
    return report;
  } catch (error) {
    log.error('the tick failed', { error });
    throw error;
  }
}

/** Kept while the process lives: what makes backups remembers when the last backup was made. */
async function open(): Promise<{
  readonly settings: FunctionSettings;
  readonly world: ObjectWorld;
  readonly backups: TickBackups | null;
  readonly autoScavenge: (deadlineMs: number) => Promise<void>;
}> {
  const opened = await openWorld(log, false);
  const { settings, world } = opened;
  const autoScavenge = createScheduler({
    world,
    schedule: createSchedule(),
    self: SELF,
    config: autoScavengeConfig(settings, world),
    open: () => openObjectStore(world, objectLogOptions(settings)),
  });
  return { ...opened, autoScavenge, backups: backupsOf(opened, await backupKeyOf(opened.settings)) };
}

function backupsOf(
  { settings, world }: { readonly settings: FunctionSettings; readonly world: ObjectWorld },
  key: Uint8Array | null,
): TickBackups | null {
  if (settings.backup === null) return null;
  const { place, key: _, compression, ...rest } = settings.backup;
  const repositoryWorld = { ...world, keys: nodeKeys, compression: nodeCompression };
  const openIt = async (): Promise<Repository> => {
    const objects = await openObjects(place);
    try {
      return await openRepository(objects, { key, compression, create: true }, repositoryWorld);
    } catch (error) {
      await objects.close();
      throw error;
    }
  };
  return new TickBackups({
    ...rest,
    world,
    newTemporaryStorage,
    options: objectLogOptions(settings),
    repository: openIt,
  });
}

/** A tick in a folder of its own; the platform keeps the folder's disk from call to call, so it is emptied. */
async function tickIn(
  settings: FunctionSettings,
  world: ObjectWorld,
  {
    backups,
    autoScavenge,
  }: { readonly backups: TickBackups | null; readonly autoScavenge: (untilMs: number) => Promise<void> },
  deadlineMs: number,
): Promise<TickReport> {
  const scratch = await newTemporaryStorage();
  try {
    return await tick({
      world,
      deadlineMs,
      scratch: scratch.storage,
      scavengeStates: scratch.states,
      options: objectLogOptions(settings),
      open: openObjectStore,
      settings: { scavenge: scavengeConfig(settings) },
      autoScavenge,
      ...(backups !== null && { shipBackup: (untilMs: number) => backups.ship(untilMs) }),
    });
  } finally {
    await scratch.remove();
  }
}
