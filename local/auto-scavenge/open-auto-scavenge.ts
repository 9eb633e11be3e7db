import { readFile } from 'node:fs/promises';
import * as path from 'node:path';
import type { AutoScavenge } from '../../core/auto-scavenge/api.ts';
import { createAutoScavenge } from '../../core/auto-scavenge/auto-scavenge.ts';
import { type AskedOrders, ScavengeOrders } from '../../core/auto-scavenge/orders/orders.ts';
import { createSingleNode } from '../../core/auto-scavenge/single-node/single-node.ts';
import type { Clock } from '../../core/ports/clock.ts';
import type { Ids } from '../../core/ports/ids.ts';
import type { Keys } from '../../core/ports/keys.ts';
import type { Log } from '../../core/ports/log.ts';
import type { Meter } from '../../core/ports/meter.ts';
import type { NodeAddress, Nodes } from '../../core/ports/nodes.ts';
import { licenceGuard, licenceOf } from '../../core/security/licence/licence.ts';
import type { Licence, LicenceConfig } from '../../core/security/api.ts';
import type { Store } from '../../core/store/store.ts';
import type { Authorize } from '../../core/streams/api.ts';
import { timestampText } from '../../core/base/time.ts';
import { createSchedule } from '../../infra/cron-schedule.ts';
import type { Values } from '../../infra/runtime/config/options.ts';

const MINUTE_MS = 60_000;

/** What the auto-scavenge of any node is put together of. */
export interface AutoScavengeWorld {
  readonly values: Pick<
    Values,
    | 'AutoScavenge:Enabled'
    | 'AutoScavenge:TimeZone'
    | 'AutoScavenge:NodeLostAfter'
    | 'Licensing:LicenseKey'
    | 'Licensing:IssuerKeyFile'
    | 'Licensing:UseBuiltIn'
    | 'Dev'
    | 'MemDb'
  >;
  readonly version: string;
  readonly open: Pick<Store, 'store' | 'scavenger' | 'status'>;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly keys: Keys;
  readonly log: Log;
  readonly meter: Meter;
  /** Told of each scavenge that the schedule starts on this node. */
  readonly onStarted?: (scavengeId: string) => void;
}

interface OpenAutoScavengeOptions extends AutoScavengeWorld {
  /** Where others reach the node. */
  readonly self: () => NodeAddress;
  /** False while the node starts or stops. */
  readonly isLeader: () => boolean;
}

export interface OpenAutoScavenge {
  readonly autoScavenge: AutoScavenge;
  /** For the handlers of `/admin/scavenge`. */
  readonly orders: ScavengeOrders;
  /** Lets time pass, until aborted; resolves when nothing is under way any more. */
  run(signal: AbortSignal): Promise<void>;
}

/** The auto-scavenge of a single node. To be called when the store is open. */
export async function openAutoScavenge({
  self,
  isLeader,
  ...world
}: OpenAutoScavengeOptions): Promise<OpenAutoScavenge> {
  const { open, clock, log } = world;
  const { scavenger, store } = open;
  // A single node asks itself: no other member can have forgotten an order.
  const orders = new ScavengeOrders({ scavenger, store, clock, log, leadsOthers: () => false, leaseMs: null });
  const nodes = createSingleNode({
    orders: ordersTold(orders, world),
    clock,
    self,
    isLeader,
    leadsSinceMs: clock.nowMs(),
    writerCheckpoint: () => open.status().checkpoints.writer,
  });
  return driven(world, orders, nodes);
}

/** The orders of a node as it calls itself, with a call of `onStarted`. */
export function ordersTold(orders: ScavengeOrders, { onStarted }: AutoScavengeWorld): AskedOrders {
  return onStarted === undefined ? orders : telling(orders, onStarted);
}

/** Everything behind the members of the cluster: licence, schedule, driver, and its ticks. */
export async function driven(
  { values, version, open: { store }, clock, ids, keys, log, meter }: AutoScavengeWorld,
  orders: ScavengeOrders,
  nodes: Nodes,
  authority?: () => Promise<Authorize>,
): Promise<OpenAutoScavenge> {
  const licence = await nodeLicence(values, keys);
  const guard = licenceGuard('AUTO_SCAVENGE', { licence, clock, log });
  const reason = offReason(values);
  const autoScavenge = createAutoScavenge(
    {
      store,
      nodes,
      schedule: createSchedule(),
      clock,
      ids,
      log,
      meter,
      orders,
      ...(authority !== undefined && { authority }),
    },
    {
      isOff: () => reason ?? guard(),
      zone: values['AutoScavenge:TimeZone'],
      nodeLostAfterMs: nodeLostAfterMs(values),
    },
  );
  const now = autoScavenge.enabled();
  if (now.enabled)
    log.info(`AutoScavenge ${version} plugin enabled.`, {
      licence: licence.source,
      ...(licence.expiresAtMs !== null && { licenceExpires: timestampText(Math.floor(licence.expiresAtMs), 0) }),
      timeZone: values['AutoScavenge:TimeZone'],
    });
  else log.info(`AutoScavenge ${version} plugin disabled.`, { reason: now.reason });
  return { autoScavenge, orders, run: (signal) => runTicks({ autoScavenge, clock, log, signal }) };
}

export function nodeLostAfterMs(values: Pick<Values, 'AutoScavenge:NodeLostAfter'>): number {
  return values['AutoScavenge:NodeLostAfter'] * MINUTE_MS;
}

/** A repeated order is answered with the run that the first one started. */
function telling(orders: ScavengeOrders, onStarted: (scavengeId: string) => void): AskedOrders {
  let told = '';
  return {
    start: async (order, options) => {
      const started = await orders.start(order, options);
      if (started.scavengeId !== told) onStarted(started.scavengeId);
      told = started.scavengeId;
      return started;
    },
    stop: (order, scavengeId) => orders.stop(order, scavengeId),
    asked: (order) => orders.asked(order),
    last: () => orders.last(),
  };
}

/** Why auto-scavenge is off whatever the licence says; null when it is not. */
export function offReason(values: Pick<Values, 'AutoScavenge:Enabled' | 'Dev' | 'MemDb'>): string | null {
  if (values['AutoScavenge:Enabled'] === false) return 'The option AutoScavenge:Enabled is false.';
  if (values.Dev) return 'The node runs in dev mode (option Dev).';
  return values.MemDb ? 'The database is kept in memory (option MemDb).' : null;
}

/** Time between two ticks: what a paused or finished node scavenge waits at most to be noticed. */
export const TICK_PERIOD_MS = 2_000;
/** How long a tick may take. What is left is done by the next one. */
export const TICK_MS_MAX = 10_000;
/** A failure that goes on is logged again after this many ticks. */
const TICKS_BETWEEN_LINES = 150;

interface TickerParts {
  readonly autoScavenge: AutoScavenge;
  readonly clock: Clock;
  readonly log: Log;
  /** Ends the ticking. */
  readonly signal: AbortSignal;
}

/**
 * Calls the tick every few seconds, one after the other, until aborted; resolves when the last one has ended. A tick
 * that fails is logged, and the next one tries again.
 */
export async function runTicks({ autoScavenge, clock, log, signal }: TickerParts): Promise<void> {
  let failures = 0;
  while (!signal.aborted) {
    try {
      await autoScavenge.tick(clock.monotonicMs() + TICK_MS_MAX);
      if (failures > 0) log.info('AutoScavenge works again.', { failedTicks: failures });
      failures = 0;
    } catch (error) {
      if (failures % TICKS_BETWEEN_LINES === 0)
        log.error('AutoScavenge failed; will retry.', { error, failedTicks: failures + 1 });
      failures++;
    }
    await clock.sleep(TICK_PERIOD_MS, signal);
  }
}

/** The licence that the options of a node amount to. */
export async function nodeLicence(
  values: Pick<Values, 'Licensing:LicenseKey' | 'Licensing:IssuerKeyFile' | 'Licensing:UseBuiltIn'>,
  keys: Keys,
): Promise<Licence> {
  const key = values['Licensing:LicenseKey'];
  return licenceOf(
    {
      key,
      issuerKey: key === null ? null : await issuerKeyOf(values['Licensing:IssuerKeyFile']),
      useBuiltIn: values['Licensing:UseBuiltIn'],
    },
    keys,
  );
}

async function issuerKeyOf(file: string | null): Promise<LicenceConfig['issuerKey']> {
  if (file === null) return null;
  try {
    return { pem: await readFile(path.resolve(file), 'utf8') };
  } catch (error) {
    return { unreadable: `${file} (${(error as NodeJS.ErrnoException).code ?? String(error)}).` };
  }
}
