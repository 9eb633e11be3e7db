import type { StoreHold } from '../../core/store/api.ts';
import type { SkuaError } from '../../core/base/errors.ts';
import type { Jobs } from '../../core/ports/jobs.ts';
import type { ErasureReport, CheckErasureArgs, ScavengeControl, ScavengeView } from '../../core/scavenge/api.ts';
import type { EventStore } from '../../core/streams/api.ts';

/** What a store stands on, wherever its events lie. */
export interface Backend {
  readonly store: EventStore;
  readonly scavenger: ScavengeControl & ScavengeView;
  readonly failed: Promise<SkuaError>;
  /** Run backups of what is held. */
  readonly jobs: Pick<Jobs, 'run'>;
  hold(): Promise<StoreHold>;
  /**
   * Looks for what remains in all files. The caller has checked what is asked for. Rejects with what the signal was
   * aborted by, or `aborted`.
   */
  search(wanted: CheckErasureArgs, signal: AbortSignal | undefined): Promise<ErasureReport>;
  /** Resolves when no scavenge is active, where this process runs it. */
  readonly idle?: () => Promise<void>;
  /** Brings what the scavenger tells up to date, where others run it. */
  readonly refresh?: () => Promise<void>;
  close(): Promise<void>;
}
