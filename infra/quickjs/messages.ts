import type { RoutingLimits, RoutingResult } from '../../core/ports/routing-sandbox.ts';
import type { WasmModule } from './webassembly.ts';

/** What a worker thread is started with. */
export interface SandboxSetup {
  readonly module: WasmModule;
  readonly limits: RoutingLimits;
  readonly signal: SharedArrayBuffer;
}

/** One script run. */
export interface Run {
  readonly kind: 'route' | 'check';
  readonly requestJson: string;
  readonly nowMs: number;
  readonly seed: number;
}

/** Of a check, too, for which `skipped` means that all is well. */
export type RunResult = Exclude<RoutingResult, { kind: 'unavailable' }>;

/** To a worker. */
export type ToWorker =
  | {
    readonly kind: 'run';
    readonly connectorId: string;
    /** Null when the worker has it. */
    readonly script: string | null;
    /** Number of the first run in what the worker signals; the others follow. */
    readonly firstRun: number;
    readonly runs: readonly Run[];
  }
  | { readonly kind: 'release'; readonly connectorId: string };

/** From a worker. Fewer results than runs: the others were not begun, for the worker has been busy long enough. */
export type FromWorker =
  | { readonly kind: 'ready' }
  | { readonly kind: 'results'; readonly results: readonly RunResult[] };
