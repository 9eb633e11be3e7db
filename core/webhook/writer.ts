import { isSkuaError } from '../base/errors.ts';
import type { StreamAccess } from '../security/api.ts';
import { connectorPrincipal } from '../base/principal.ts';
import { bothAllow } from '../streams/api.ts';
import type { Authorize } from '../streams/api.ts';

/**
 * What the access lists say about a connector that writes to streams, however the routing script came to name one. With
 * security off, which is null, nothing is asked.
 */
export type ListedAccess = Pick<StreamAccess, 'check' | 'authorizeWrite'> | null;

/**
 * Why the list of a stream lets the connector write nothing there, by what it says now; null where it does not. Rejects
 * where the list can't be read.
 */
export async function refusalOfList(access: ListedAccess, connectorId: string, stream: string): Promise<string | null> {
  try {
    await access?.check(connectorPrincipal(connectorId), 'write', stream);
    return null;
  } catch (error) {
    if (!isSkuaError(error, 'access_denied')) throw error;
    return `The connector may not write to the stream ${shownStream(stream)}, whose access list does not allow it. Return another name, or have an administrator add connector:${connectorId}, or $all for everyone, to its $w.`;
  }
}

/** UTF-16 code units of a stream's name in a reason. */
const SHOWN_LENGTH_MAX = 100;

/** The name of a stream for a reason. */
export function shownStream(stream: string): string {
  return JSON.stringify(stream.slice(0, SHOWN_LENGTH_MAX).toWellFormed());
}

/** What asks the list again when an event takes its place in the log, behind what else has to let it. */
export function listedAuthorize(
  access: ListedAccess,
  connectorId: string,
  stream: string,
  first: Authorize | null,
): Authorize | null | Promise<Authorize | null> {
  const asked = access?.authorizeWrite(connectorPrincipal(connectorId), 'write', stream) ?? null;
  return asked instanceof Promise ? asked.then((listed) => bothAllow(first, listed)) : bothAllow(first, asked);
}
