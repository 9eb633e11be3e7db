import { boolean, integer, path, size } from '../kinds.ts';
import { flag, option, optional } from '../option.ts';

const NO_EFFECT = 'it has no effect and will be removed';

/** Options of section 2.1: how the process as a whole behaves. */
export const application = {
  Config: option(path('FILE'), '/etc/skua/skua.conf', 'Configuration file in YAML. The default one may be missing, one named here may not'),
  Help: flag(boolean, 'Show the options and exit'),
  Version: flag(boolean, 'Show the version and exit'),
  WhatIf: flag(boolean, 'Show the options as they would be in force, with their sources, and exit'),
  AllowUnknownOptions: flag(boolean, 'Warn of options that are not known instead of refusing to start'),
  Insecure: flag(boolean, 'No TLS, no users, no access lists: everybody who reaches the port may do everything'),
  DisableTls: flag(boolean, 'No TLS, while users and access lists stay. Passwords are sent in clear text: for the loopback address, or behind a proxy'),
  Dev: flag(boolean, 'TLS with a self-signed certificate for localhost, made at the start: for development on one machine'),
  DevCertPath: optional(path('FILE'), 'File that keeps the certificate of --dev, so that the next start uses it again', { fallbackText: 'kept in memory' }),
  AllowDefaultPasswords: flag(boolean, 'Let the node listen beyond the loopback address while admin or ops has its default password'),
  MaxAppendSize: optional(size({ min: 1, max: 16_767_216 }), 'Largest append, in bytes of its events together; one event has at most 4 MiB anyway', { fallbackText: 'no limit of its own' }),
  DisableHttpCaching: flag(boolean, 'Tell HTTP caches to keep no reply'),
  LogHttpRequests: flag(boolean, 'Log a line for each HTTP request'),
  LogFailedAuthenticationAttempts: flag(boolean, 'Log a line with user and address for each request with wrong credentials'),
  StatsPeriodSec: option(integer('SECONDS', 1, 86_400), 30, 'Time between two collections of statistics'),
  AllowAnonymousEndpointAccess: flag(boolean, 'Show /stats and /metrics to everybody'),
  AllowAnonymousStreamAccess: flag(boolean, 'Let everybody use streams whose access list says $all'),
  OverrideAnonymousEndpointAccessForGossip: option(boolean, true, 'Show /gossip to everybody'),
  EnableHistograms: flag(boolean, 'Ignored', { deprecated: NO_EFFECT }),
  WorkerThreads: option(integer('COUNT', 0, 1_024), 0, 'Ignored', { deprecated: NO_EFFECT }),
};
