/** Who is calling. The anonymous caller has no name. */
export interface Principal {
  /** Login name, which counts as a role wherever roles are compared; null for the anonymous caller. */
  readonly name: string | null;
  /** Groups of the user. */
  readonly roles: readonly string[];
}

export const ADMINISTRATORS = '$admins';
export const OPERATORS = '$ops';
/** The group of users who may read the node's files, and with them everything that is in the store. */
export const BACKUP_KEEPERS = '$backup';
/** The seeds write the administrators' group once without its last letter; a user in it counts as an administrator. */
const ADMINISTRATORS_ALIAS = '$admin';

export const ANONYMOUS: Principal = { name: null, roles: [] };
/** The node itself, and every caller while security is off. */
export const SYSTEM: Principal = { name: 'system', roles: ['system', ADMINISTRATORS] };

/** The principal of a connector that writes: in no group, so that a list admits it by its name or with everybody. */
export function connectorPrincipal(connectorId: string): Principal {
  return { name: `connector:${connectorId}`, roles: [] };
}

export function isAnonymous(principal: Principal): boolean {
  return principal.name === null;
}

/** The group `$admins`, or the user `admin`. */
export function isAdministrator({ name, roles }: Principal): boolean {
  return name === 'admin' || roles.includes(ADMINISTRATORS) || roles.includes(ADMINISTRATORS_ALIAS);
}

/** The groups `$ops` and `$admins`, or the users `ops` and `admin`. */
export function isOperator(principal: Principal): boolean {
  return principal.name === 'ops' || principal.roles.includes(OPERATORS) || isAdministrator(principal);
}

/** The groups `$backup` and `$admins`, or the user `admin`. */
export function isBackupKeeper(principal: Principal): boolean {
  return principal.roles.includes(BACKUP_KEEPERS) || isAdministrator(principal);
}
