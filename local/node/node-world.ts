import type { Clock } from '../../core/ports/clock.ts';
import { IdleCollector } from '../../infra/garbage.ts';
import { systemClock } from '../../infra/system-clock.ts';
import type { DevCertificate } from '../tls/dev-certificate.ts';

/** What a node takes of the world where that may be another one than the process it has for itself. */
export interface NodeWorld {
  /**
   * The time of what is stored: when events were written and expire, scavenges and their schedule, groups of consumers.
   */
  readonly dataClock: Clock;
  /** The time of this machine: of connections, logins, certificates, senders of webhooks, and figures. */
  readonly machineClock: Clock;
  /** False: the process may end while the node runs. */
  readonly keepsProcess: boolean;
  /** Requests under way get this long to end when the node stops. */
  readonly stopGraceMs: number;
  /** Most ids of events that are remembered to recognise repeats; null for the store's own number. */
  readonly recentIds: number | null;
  /** Zeros that are written ahead into the chunk being filled; null for the log's own number. */
  readonly zeroAheadBytes: number | null;
  /** Collects the garbage of the process when it has come to rest; null where the process is there for others too. */
  readonly collector: (() => IdleCollector) | null;
  /** The development certificate of nodes that share one; null where each makes its own. */
  readonly devCertificate: ((nowMs: number) => Promise<DevCertificate>) | null;
}

/** A process that is there for its node. */
export const OWN_PROCESS: NodeWorld = {
  dataClock: systemClock,
  machineClock: systemClock,
  keepsProcess: true,
  stopGraceMs: 10_000,
  recentIds: null,
  zeroAheadBytes: null,
  collector: () => new IdleCollector(),
  devCertificate: null,
};
