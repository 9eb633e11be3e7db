import type { AutoScavengeConfig } from '../../../core/auto-scavenge/auto-scavenge.ts';
import type { Clock } from '../../../core/ports/clock.ts';
import type { Log } from '../../../core/ports/log.ts';
import type { NodeAddress } from '../../../core/ports/nodes.ts';
import { licenceGuard, licenceOf } from '../../../core/security/licence.ts';
import { nodeKeys } from '../../keys.ts';
import type { FunctionSettings } from './settings.ts';

const MINUTE_MS = 60_000;

/** All functions of a store are one member, which leads: whoever configures the schedule decides in its name, and ticks act for it. */
export const SELF: NodeAddress = { address: 'functions', port: 1 };

/** Whether scavenges are scheduled, and how, for the function that is asked and the one that acts. */
export function autoScavengeConfig({ values }: FunctionSettings, { clock, log }: { readonly clock: Clock; readonly log: Log }): AutoScavengeConfig {
  const issuer = values['Licensing:IssuerKey'];
  const licence = licenceOf({ key: values['Licensing:LicenseKey'], issuerKey: issuer === null ? null : { pem: issuer }, useBuiltIn: values['Licensing:UseBuiltIn'] }, nodeKeys);
  const guard = licenceGuard('AUTO_SCAVENGE', { licence, clock, log });
  return {
    isOff: () => (values['AutoScavenge:Enabled'] === false ? 'The option AutoScavenge:Enabled is false.' : guard()), zone: values['AutoScavenge:TimeZone'], nodeLostAfterMs: values['AutoScavenge:NodeLostAfter'] * MINUTE_MS,
  };
}
