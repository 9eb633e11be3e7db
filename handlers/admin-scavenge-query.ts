import { SkuaError } from '../core/errors.ts';
import type { ScavengeOrder } from '../core/ports/nodes.ts';
import type { ScavengeOptions } from '../core/scavenge/api.ts';
import { queryOf } from './context.ts';
import type { Call } from './context.ts';

const INT32_MAX = 2_147_483_647;
const INT32_MIN = -2_147_483_648;

/**
 * The query of POST `/admin/scavenge`, checked in the order of scavenge.md section 2.2; the first failure is thrown as
 * `bad_request` with the text documented there. Other parameters are ignored, and so is `startFromChunk` once checked.
 */
export function scavengeOptionsOf(call: Call): ScavengeOptions {
  integerOf(call, 'startFromChunk', 0, INT32_MAX, 'startFromChunk must be a positive integer');
  const threads = integerOf(call, 'threads', 1, INT32_MAX, 'threads must be a 1 or above');
  const threshold = integerOf(call, 'threshold', INT32_MIN, INT32_MAX, 'threshold must be an integer');
  const throttlePercent = integerOf(call, 'throttlePercent', 1, 100, 'throttlePercent must be between 1 and 100 inclusive');
  if (throttlePercent !== undefined && throttlePercent !== 100 && threads !== undefined && threads > 1) {
    throw new SkuaError('bad_request', 'throttlePercent must be 100 for a multi-threaded scavenge');
  }
  const syncOnly = booleanOf(call, 'syncOnly');
  return {
    ...(threads !== undefined && { threads }), ...(threshold !== undefined && { threshold }),
    ...(throttlePercent !== undefined && { throttlePercent }), ...(syncOnly !== undefined && { syncOnly }),
  };
}

/** Whether only a dry run is asked for (design.md section 9). */
export function isDryRunOf(call: Call): boolean {
  return booleanOf(call, 'dryRun') ?? false;
}

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** The order of a cluster that the request stands for (design.md section 9, "late orders"); null for one of a user. */
export function orderOf(call: Call): ScavengeOrder | null {
  const clusterScavengeId = queryOf(call, 'clusterScavengeId');
  const attempt = integerOf(call, 'attempt', 0, Number.MAX_SAFE_INTEGER, 'attempt must be an integer of 0 or above');
  if (clusterScavengeId === undefined && attempt === undefined) return null;
  if (clusterScavengeId === undefined || attempt === undefined) throw new SkuaError('bad_request', 'clusterScavengeId and attempt belong together: give both or none');
  if (!UUID.test(clusterScavengeId)) throw new SkuaError('bad_request', 'clusterScavengeId must be a UUID');
  return { clusterScavengeId: clusterScavengeId.toLowerCase(), attempt };
}

function integerOf(call: Call, name: string, min: number, max: number, refusal: string): number | undefined {
  const text = queryOf(call, name);
  if (text === undefined) return undefined;
  const value = /^[+-]?\d{1,20}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= min && value <= max) return value === 0 ? 0 : value;
  throw new SkuaError('bad_request', refusal);
}

function booleanOf(call: Call, name: string): boolean | undefined {
  const text = queryOf(call, name)?.toLowerCase();
  if (text === undefined) return undefined;
  if (text === 'true' || text === 'false') return text === 'true';
  throw new SkuaError('bad_request', `${name} must be a boolean`);
}
