import type { Clock } from '../../core/ports/clock.ts';
import type { Log } from '../../core/ports/log.ts';
import type { Meter } from '../../core/ports/meter.ts';
import { createSecurity } from '../../core/security/security.ts';
import type { RunningSecurity } from '../../core/security/security.ts';
import type { EventStore } from '../../core/streams/api.ts';
import { systemIds } from '../../infra/system-ids.ts';
import { nodeKeys } from '../../infra/node-keys.ts';
import { checkStart, isLoopback } from '../config/check-config.ts';
import type { Config } from '../config/config.ts';
import { sessionSecrets } from '../ui/session-secrets.ts';

/** The log repeats this often that everybody may use the node. */
const REMIND_MS = 3_600_000;

/** Warns at the start and hourly that others reach a node that has no users, until the signal aborts. */
export async function watchInsecure(
  address: string,
  { clock, log, signal }: Pick<SecurityParts, 'clock' | 'log'> & { readonly signal: AbortSignal },
): Promise<void> {
  if (isLoopback(address)) return;
  while (!signal.aborted) {
    log.warn(
      'security is off, and other machines can reach this node: anyone who does can read, delete and shut down. Start it without --insecure, or restrict access to it',
      { address },
    );
    await clock.sleep(REMIND_MS, signal);
  }
}

/**
 * Warns, at the start and hourly while it is so, that everybody knows the password of a user, until the signal aborts.
 * Finding out takes derivations, so that nothing waits for it; a store that can't be read logs that itself.
 */
export async function watchDefaultPasswords(
  stand: () => Promise<boolean>,
  { clock, log, signal }: Pick<SecurityParts, 'clock' | 'log'> & { readonly signal: AbortSignal },
): Promise<void> {
  while (!signal.aborted) {
    const known = await stand().catch(() => false);
    if (known && !signal.aborted)
      log.warn(
        'the user admin or ops has the default password, or an empty one: whoever reaches this node may log in with it. Change it on the page (the menu of the user, at the top) or with skua user reset-password',
      );
    await clock.sleep(REMIND_MS, signal);
  }
}

interface SecurityParts {
  readonly config: Config;
  /** Of the data; null where nothing is kept in one. */
  readonly directory: string | null;
  readonly store: EventStore;
  /** For what the node writes by itself. */
  readonly written: Pick<EventStore, 'append'>;
  /** As `ClusterFeature.upToDate`; null for no member of a cluster. */
  readonly upToDate: (() => Promise<void> | null) | null;
  readonly log: Log;
  readonly meter: Meter;
  readonly clock: Clock;
}

/** The users of a node. Rejects where the node must not run with the passwords that it has. */
export async function startSecurity({
  config,
  directory,
  store,
  written,
  upToDate,
  log,
  meter,
  clock,
}: SecurityParts): Promise<RunningSecurity> {
  const { values } = config;
  const {
    PasswordFormat,
    AllowAnonymousStreamAccess,
    AllowDefaultPasswords,
    DefaultAdminPassword,
    DefaultOpsPassword,
    NodeIp,
  } = values;
  const security = createSecurity(
    {
      store,
      keys: nodeKeys,
      clock,
      ids: systemIds,
      log,
      meter,
      upToDate,
      sessions: values.DisableAdminUi ? null : { written, secrets: sessionSecrets(values, directory) },
    },
    {
      passwordFormat: PasswordFormat,
      allowAnonymousStreamAccess: AllowAnonymousStreamAccess,
      adminPassword: DefaultAdminPassword,
      opsPassword: DefaultOpsPassword,
    },
  );
  // Asking costs two derivations, and only matters where others reach the node. A refused start creates no users, so
  // that the next one can still give them other passwords.
  const hasDefaultPasswords = !isLoopback(NodeIp) && !AllowDefaultPasswords && (await security.hasDefaultPasswords());
  checkStart(config, { hasDefaultPasswords });
  await security.start();
  if (PasswordFormat === 'strong' && !config.given('PasswordFormat') && (await security.hasCompatiblePasswords())) {
    log.warn(
      "passwords of this directory are in the format of EventStoreDB, and new ones will be strong (scrypt), which it can't read. Set PasswordFormat: compatible if the directory may be used there again, otherwise PasswordFormat: strong",
    );
  }
  return security;
}
