import { SkuaError } from '../errors.ts';
import type { JobProgress } from '../ports/jobs.ts';
import type { ScavengePoint } from '../ports/scavenge-state.ts';
import { checkReadableName } from '../streams/names.ts';
import { notFoundError } from '../streams/store-context.ts';
import type { DryRunReport, Explanation } from './api.ts';
import { DRY_RUN_JOB, type DryRunArgs } from './dry-run.ts';
import { EXPLAIN_JOB, type ExplainArgs } from './explain.ts';
import { readLatestPoint } from './points.ts';
import { type ScavengeDeps, stateOptionsOf, withFiles } from './run-context.ts';
import type { RunSettings } from './run-files.ts';

/** What a scavenge would do, found out without writing anything. */

/** Counts what a scavenge that began now would remove. Rejects with `aborted` when the signal ends it. */
export async function dryRunReport(deps: ScavengeDeps, scavengeId: string, options: { readonly threshold: number; readonly throttlePercent: number }, signal: AbortSignal, onProgress: (progress: JobProgress) => void): Promise<DryRunReport> {
  const settings = settingsNow(deps, await pointNow(deps, options.threshold), options.throttlePercent);
  return withFiles(deps.data, true, (files) => {
    const args: DryRunArgs = { files, settings, scavengeId };
    return deps.ports.jobs.run(DRY_RUN_JOB, args, { signal, onProgress }) as Promise<DryRunReport>;
  });
}

/** Says for one stream which events would go, by which rule, and which stay. */
export async function explainStream(deps: ScavengeDeps, stream: string, signal: AbortSignal): Promise<Explanation> {
  const refusal = checkReadableName(stream);
  if (refusal !== null) throw refusal;
  if (signal.aborted) throw new SkuaError('store_closed', 'The store is closed: no stream is explained.');
  const { lastEventNumber, metadataVersion } = await deps.data.store.streamInfo(stream);
  if (lastEventNumber < 0 && metadataVersion < 0) throw notFoundError(stream);
  const settings = settingsNow(deps, await pointNow(deps, 0), 100);
  return withFiles(deps.data, true, (files) => {
    const args: ExplainArgs = { files, settings, stream };
    return deps.ports.jobs.run(EXPLAIN_JOB, args, { signal }) as Promise<Explanation>;
  });
}

/** The scavenge point that would be written now. */
async function pointNow({ data: { store, table }, ports: { clock } }: ScavengeDeps, threshold: number): Promise<ScavengePoint> {
  const latest = await readLatestPoint(store);
  return { position: table.end, eventNumber: (latest?.eventNumber ?? -1) + 1, effectiveNowMs: Math.floor(clock.nowMs()), threshold };
}

function settingsNow({ config }: ScavengeDeps, point: ScavengePoint, percent: number): RunSettings {
  return { point, unsafeIgnoreHardDelete: config.unsafeIgnoreHardDelete, state: stateOptionsOf(config, 1), throttle: { percent, elapsedMs: 0, restedMs: 0 } };
}
