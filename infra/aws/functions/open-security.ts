import { createSecurity } from '../../../core/security/security.ts';
import type { RunningSecurity } from '../../../core/security/security.ts';
import { nodeKeys } from '../../keys.ts';
import type { FunctionStore } from './open-store.ts';

/** Users, logins and access lists as on a node, over the same streams; null while security is off. The store is closed where that fails, for the next call opens it anew. */
export async function openSecurity({ settings: { values }, instance, store, world: { clock, ids, log, meter } }: FunctionStore): Promise<RunningSecurity | null> {
  if (values.Insecure) return null;
  const security = createSecurity(
    { store, keys: nodeKeys, clock, ids, log, meter },
    { passwordFormat: values.PasswordFormat, allowAnonymousStreamAccess: values.AllowAnonymousStreamAccess, adminPassword: values.DefaultAdminPassword, opsPassword: values.DefaultOpsPassword },
  );
  try {
    await security.start();
    return security;
  } catch (error) {
    await instance.close().catch(() => {});
    throw error;
  }
}
