import { SkuaError } from '../../../core/errors.ts';
import type { Scavenger } from '../../../core/scavenge/api.ts';

/** In functions that serve no routes of scavenges. */
export const noScavenger: Scavenger = {
  start: refuse, stop: refuse, startDryRun: refuse, dryRun: refuse, explain: refuse,
  current: () => null,
  last: () => null,
  progress: () => null,
  hold: () => () => {},
  idle: async () => {},
  close: async () => {},
};

async function refuse(): Promise<never> {
  throw new SkuaError('not_found', 'Scavenges are the business of another function.');
}
