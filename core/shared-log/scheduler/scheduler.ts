import type { AutoScavenge } from '../../auto-scavenge/api.ts';
import { type AutoScavengeConfig, createAutoScavenge } from '../../auto-scavenge/auto-scavenge.ts';
import type { NodeAddress } from '../../ports/nodes.ts';
import type { Schedule } from '../../ports/schedule.ts';
import { layer, performWrite } from '../../streams/layer/layer.ts';
import type { ObjectInstance, ObjectWorld } from '../api.ts';
import { createObjectNodes } from '../control/control.ts';

interface SchedulerParts {
  readonly world: ObjectWorld;
  readonly schedule: Schedule;
  readonly config: AutoScavengeConfig;
  readonly self: NodeAddress;
  /** Called when the schedule is first needed, and again where that failed. The caller closes the instance. */
  readonly open: () => Promise<ObjectInstance>;
}

/**
 * Lets the schedule have its say in ticks. It lives as long as the process, over an instance of that time: what is
 * known from the tick before need not be read again, so that a tick of a store at rest asks once for what others have
 * written.
 */
export function createScheduler(parts: SchedulerParts): (deadlineMs: number) => Promise<void> {
  const {
    config: { isOff },
  } = parts;
  let opening: Promise<Scheduled> | null = null;
  return async (deadlineMs) => {
    if ((typeof isOff === 'function' ? isOff() : isOff) !== null) return;
    opening ??= driven(parts);
    const { instance, driver } = await opening.catch((error: unknown) => {
      opening = null;
      throw error;
    });
    await instance.refresh();
    await driver.tick(deadlineMs);
  };
}

interface Scheduled {
  readonly instance: ObjectInstance;
  readonly driver: AutoScavenge;
}

async function driven({ world, schedule, config, self, open }: SchedulerParts): Promise<Scheduled> {
  const instance = await open();
  const { store, internals } = instance;
  const read = layer(internals, { write: (write) => performWrite(store, write) });
  const nodes = createObjectNodes({ world, store: read, self });
  return { instance, driver: createAutoScavenge({ ...world, store: read, nodes, schedule }, config) };
}
