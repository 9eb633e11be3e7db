import type { AutoScavenge } from '../../core/auto-scavenge/api.ts';
import { createAutoScavenge } from '../../core/auto-scavenge/auto-scavenge.ts';
import { ScavengeOrders } from '../../core/auto-scavenge/orders.ts';
import { createSingleNode } from '../../core/auto-scavenge/single-node.ts';
import type { Clock } from '../../core/ports/clock.ts';
import type { Ids } from '../../core/ports/ids.ts';
import type { Keys } from '../../core/ports/keys.ts';
import type { Log } from '../../core/ports/log.ts';
import type { Meter } from '../../core/ports/meter.ts';
import type { NodeAddress } from '../../core/ports/nodes.ts';
import { licenceGuard } from '../../core/security/licence.ts';
import type { OpenStore } from '../../core/store.ts';
import { timestampText } from '../../core/time.ts';
import { createSchedule } from '../../infra/schedule.ts';
import type { Values } from '../config/options.ts';
import { nodeLicence } from './node-licence.ts';
import { offReason } from './off-reason.ts';
import { runTicks } from './timer.ts';

const MINUTE_MS = 60_000;

export interface OpenAutoScavengeOptions {
  readonly values: Pick<Values, 'AutoScavenge:Enabled' | 'AutoScavenge:TimeZone' | 'AutoScavenge:NodeLostAfter' | 'Licensing:LicenseKey' | 'Licensing:IssuerKeyFile' | 'Licensing:UseBuiltIn' | 'Dev' | 'MemDb'>;
  readonly version: string;
  readonly open: Pick<OpenStore, 'store' | 'scavenger' | 'status'>;
  /** Where others reach the node. */
  readonly self: () => NodeAddress;
  /** False while the node starts or stops. */
  readonly isLeader: () => boolean;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly keys: Keys;
  readonly log: Log;
  readonly meter: Meter;
}

export interface OpenAutoScavenge {
  readonly autoScavenge: AutoScavenge;
  /** For the handlers of `/admin/scavenge`. */
  readonly orders: ScavengeOrders;
  /** Lets time pass, until aborted; resolves when nothing is under way any more. */
  run(signal: AbortSignal): Promise<void>;
}

/** The auto-scavenge of a single node. To be called when the store is open. */
export async function openAutoScavenge({ values, version, open, self, isLeader, clock, ids, keys, log, meter }: OpenAutoScavengeOptions): Promise<OpenAutoScavenge> {
  const { store, scavenger } = open;
  const licence = await nodeLicence(values, keys);
  const guard = licenceGuard('AUTO_SCAVENGE', { licence, clock, log });
  const reason = offReason(values);
  // A single node asks itself: nobody can have forgotten what it was ordered.
  const orders = new ScavengeOrders({ scavenger, store, clock, log, leadsOthers: () => false, leaseMs: null });
  const nodes = createSingleNode({ orders, clock, self, isLeader, leadsSinceMs: clock.nowMs(), writerCheckpoint: () => open.status().checkpoints.writer });
  const autoScavenge = createAutoScavenge({ store, nodes, schedule: createSchedule(), clock, ids, log, meter, orders }, {
    isOff: () => reason ?? guard(), zone: values['AutoScavenge:TimeZone'], nodeLostAfterMs: values['AutoScavenge:NodeLostAfter'] * MINUTE_MS,
  });
  const now = autoScavenge.enabled();
  if (now.enabled) log.info(`AutoScavenge ${version} plugin enabled.`, { licence: licence.source, ...(licence.expiresAtMs !== null && { licenceExpires: timestampText(Math.floor(licence.expiresAtMs), 0) }), timeZone: values['AutoScavenge:TimeZone'] });
  else log.info(`AutoScavenge ${version} plugin disabled.`, { reason: now.reason });
  return { autoScavenge, orders, run: (signal) => runTicks({ autoScavenge, clock, log, signal }) };
}
