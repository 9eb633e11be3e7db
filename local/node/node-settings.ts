import { hostname } from 'node:os';
import * as path from 'node:path';
import { domainToASCII } from 'node:url';
import type { AppOptions } from '../../handlers/http/context.ts';
import { VERSION } from '../../infra/runtime/version.ts';
import { tlsModeOf } from '../config/check-config.ts';
import type { Config } from '../config/config.ts';
import type { Values } from '../../infra/runtime/config/options.ts';
import type { OpenNodeOptions } from '../store/open-node.ts';

/** The options of a node as its parts take them. */

export function storeOptions(config: Config): OpenNodeOptions['store'] {
  const { values } = config;
  return {
    // The endpoint as configured: a run that a restart cut off is recognised by it, whatever port 0 came to mean.
    scavenge: { ...scavengeSettings(values), nodeEndpoint: endpointOf(values) },
    beginsProofs: values['Proof:Chain'],
    cacheBytes: values.ChunksCacheSize,
    index: {
      memTableEntriesMax: values.MaxMemTableSize,
      existenceFilterBytes: values.StreamExistenceFilterSize,
      cacheDepth: values.IndexCacheDepth,
      bloomFilters: values.UseIndexBloomFilters,
      verify: !values.SkipIndexVerify,
    },
    log: {
      truncationBytesMax: values.MaxTruncation,
      verifyChunks: !values.SkipDbVerify,
      verifyOngoing: !values.SkipDbVerify,
      ...(config.given('ChunkSize') && { chunkSizeBytes: values.ChunkSize }),
      ...(values.MaxAppendSize !== null && { appendBytesMax: values.MaxAppendSize }),
    },
  };
}

function endpointOf({ NodeHostAdvertiseAs, NodeIp, NodePortAdvertiseAs, NodePort }: Values): string {
  const host = NodeHostAdvertiseAs ?? NodeIp;
  return `${host.includes(':') ? `[${host}]` : host}:${NodePortAdvertiseAs || NodePort}`;
}

/** The options as the store takes them: the page size is given in KiB. */
function scavengeSettings(values: Values) {
  return {
    pageSizeBytes: values.ScavengeBackendPageSize * 1_024,
    cacheBytes: values.ScavengeBackendCacheSize,
    hashUsersCacheEntries: values.ScavengeHashUsersCacheCapacity,
    historyMaxAgeDays: values.ScavengeHistoryMaxAge,
    disableMerging: values.DisableScavengeMerging,
    unsafeIgnoreHardDelete: values.UnsafeIgnoreHardDelete,
    keepsDeletedData: values.KeepDataOfDeletedStreams,
  };
}

/** Names by which the node is known, beside those that can belong to no other machine. */
export function allowedHosts({ AllowedHosts, NodeHostAdvertiseAs }: Values): readonly string[] {
  return [...AllowedHosts, hostname(), ...(NodeHostAdvertiseAs === null ? [] : [domainToASCII(NodeHostAdvertiseAs)])];
}

export function appOptions(values: Values): Partial<AppOptions> {
  return {
    version: VERSION,
    readPageBytesMax: values.MaxReadPageBytes,
    ...(values.MaxAppendSize !== null && { appendBytesMax: values.MaxAppendSize }),
    disableHttpCaching: values.DisableHttpCaching,
    disableAdminUi: values.DisableAdminUi,
    disableStatsOnHttp: values.DisableStatsOnHttp,
    disableGossipOnHttp: values.DisableGossipOnHttp,
    disableAtomPub: !values.EnableAtomPubOverHttp && !values.Dev,
    allowAnonymousEndpointAccess: values.AllowAnonymousEndpointAccess,
    allowAnonymousGossip: values.OverrideAnonymousEndpointAccessForGossip,
    trustedAuthHeader: values.EnableTrustedAuth ? values.TrustedAuthHeader : null,
    logFailedAuthenticationAttempts: values.LogFailedAuthenticationAttempts,
    logHttpRequests: values.LogHttpRequests,
    corsOrigins: values.CorsOrigins,
    hstsSeconds: tlsModeOf(values) === 'certificates' ? values.HstsMaxAge : 0,
    allowedHosts: allowedHosts(values),
    compressionMinBytes: values.CompressionMinSize,
  };
}

const PLACES: ReadonlySet<string | null> = new Set(['FILE', 'DIR', 'PLACE']);

/** Paths that the options name, with that of their file: what lies there is no stranger's. */
export function placesNamed({ settings, file }: Config): string[] {
  const named = [...settings.values()]
    .filter(({ option, value }) => PLACES.has(option.kind.placeholder) && typeof value === 'string')
    .map(({ value }) => value as string);
  return [...named, ...(file === null ? [] : [file])].map((place) => path.resolve(place));
}
