import type { AppContext, AppFeatures, AppWorld, ServerSide } from '../../handlers/http/context.ts';

/** What the handlers need, without its parts: tests name the one thing that they are about. */
export type FlatContext = Omit<AppContext, 'world' | 'features' | 'server'> & AppWorld & AppFeatures & ServerSide;

export function contextOf(flat: FlatContext): AppContext {
  const {
    clock,
    ids,
    log,
    meter,
    autoScavenge,
    scavengeOrders,
    backups,
    webhooks,
    cluster,
    subscriptions,
    erasure,
    page,
    rawHeadersOf,
    addressOf,
    isLocal,
    isTrustedProxy,
    connectionOf,
    peerOf,
    plainHostOf,
    localAddressOf,
    readBody,
    replyShareOf,
    toResponse,
    certificateOf,
    encoder,
    ...rest
  } = flat;
  return {
    ...rest,
    world: { clock, ids, log, meter },
    features: present({ autoScavenge, scavengeOrders, backups, webhooks, cluster, subscriptions, erasure, page }),
    server: present({
      rawHeadersOf,
      addressOf,
      isLocal,
      isTrustedProxy,
      connectionOf,
      peerOf,
      plainHostOf,
      localAddressOf,
      readBody,
      replyShareOf,
      toResponse,
      certificateOf,
      encoder,
    }),
  };
}

function present<T extends object>(
  parts: T,
): { [K in keyof T]?: NonNullable<T[K]> | (null extends T[K] ? null : never) } {
  return Object.fromEntries(Object.entries(parts).filter(([, part]) => part !== undefined)) as never;
}
