import { boolean, integer, path, text, timeZone } from '../kinds.ts';
import { option, optional } from '../option.ts';

const MINUTES_PER_WEEK = 10_080;

/** Options of scavenges on a schedule (auto-scavenge.md section 2.1; the others are ours). */
export const autoScavenge = {
  'AutoScavenge:Enabled': optional(boolean, 'Scavenge on a schedule. Off in any case without a licence, and with --dev and --mem-db, beside which it must not be switched on', { fallbackText: 'true where the licence grants it' }),
  'AutoScavenge:TimeZone': option(timeZone, 'UTC', 'Time zone of the schedule, such as Europe/Oslo'),
  'AutoScavenge:NodeLostAfter': option(integer('MINUTES', 1, MINUTES_PER_WEEK), 30, 'Minutes for which a member of the cluster may be out of reach before a cycle goes on without it'),
};

/** Options of the licence. */
export const licensing = {
  'Licensing:LicenseKey': optional(text('KEY'), 'Licence key, as `skua license issue` makes it. Without one the built-in licence counts, which grants everything', { isSensitive: true, fallbackText: 'the built-in licence' }),
  'Licensing:IssuerKeyFile': optional(path('FILE'), 'Public key of whoever issues licence keys, as `skua license issuer` makes it'),
  'Licensing:UseBuiltIn': option(boolean, true, 'Whether the built-in licence counts where there is no licence key'),
};
