import type { Clock } from '../../core/ports/clock.ts';
import type { NodeAddress } from '../../core/ports/nodes.ts';
import type { Storage } from '../../core/ports/storage.ts';
import { ATTRIBUTE_FOLDERS } from '../../core/attributes/format/attribute-folders.ts';
import { isSkuaError } from '../../core/base/errors.ts';
import { HISTORY_STREAM } from '../../core/scavenge/history/history.ts';
import type { Licence } from '../../core/security/api.ts';
import type { Store } from '../../core/store/store.ts';
import type { AuditView, DiskView, LoadedCertificate, NodeState, OverviewView } from '../../handlers/documents/node.ts';
import type { GossipMember } from '../../handlers/http/node-control.ts';
import { diskSpace } from '../metrics/machine-metrics.ts';
import type { Activity } from '../metrics/activity-metrics.ts';
import { warningsOf } from './warnings.ts';
import type { WarningFacts } from './warnings.ts';

/** Several pages that look at once get the same answer. */
const KEPT_MS = 1_000;
/** How often free space is asked for, and the sizes of the files of the index. */
const DISK_MS = 10_000;
const INDEX_MS = 60_000;
/** Trusted roots can be many. */
const CERTIFICATES_MAX = 20;
const DAY_MS = 86_400_000;
/** Folders of the indexes; their paths in the storage, whatever their place on the disk. */
const INDEX_FOLDERS = ['index', 'index/stream-existence', 'index/scavenging', ...ATTRIBUTE_FOLDERS];

export interface OverviewParts {
  readonly version: string;
  readonly instanceId: string;
  readonly authentication: 'internal' | 'insecure';
  readonly clock: Clock;
  readonly startedMs: number;
  readonly state: () => NodeState;
  readonly address: () => NodeAddress;
  readonly isSecure: boolean;
  /** Others than this machine can reach the node. */
  readonly isReachable: boolean;
  readonly isMember: boolean;
  readonly open: () => Pick<Store, 'status' | 'chunkMap' | 'store'>;
  readonly members: () => readonly GossipMember[];
  /** The files of the node; null where they are not on its disk. */
  readonly files: { readonly storage: () => Storage; readonly folder: string } | null;
  readonly isInMemory: boolean;
  readonly activity: Activity;
  readonly process: () => OverviewView['process'];
  readonly connections: () => number | Promise<number>;
  /** Those in force; null without TLS. */
  readonly certificates: () => (WarningFacts['certificate'] & { readonly loaded: readonly LoadedCertificate[] }) | null;
  /** A user has its default password, which everybody knows. */
  readonly hasDefaultPasswords: () => Promise<boolean>;
  readonly licence: () => Promise<Licence>;
  readonly backups: () => {
    readonly place: string | null;
    readonly newestMs: number | null;
    readonly provenMs: number | null;
  } | null;
  readonly audit: () => AuditView | null;
  readonly logLevel: () => string;
  readonly configuration: () => readonly string[];
}

/**
 * How the node is, in one answer that may be asked for again and again: what has to be asked of the disk is remembered
 * for a while.
 */
export class NodeOverview {
  readonly #parts: OverviewParts;
  readonly #space: Remembered<Awaited<ReturnType<typeof diskSpace>>>;
  readonly #indexBytes: Remembered<number>;
  readonly #view: Remembered<OverviewView>;
  #licence: Promise<Licence> | null = null;
  /** As they were when one began or changed last; since then the log has grown in the one that is being written. */
  #chunks = { version: '', bytes: 0, logEnd: 0 };
  #wasScavenged = false;

  constructor(parts: OverviewParts) {
    this.#parts = parts;
    const { clock, files } = parts;
    this.#space = new Remembered(clock, DISK_MS, async () => (files === null ? null : diskSpace(files.folder)));
    this.#indexBytes = new Remembered(clock, INDEX_MS, async () => (files === null ? 0 : bytesIn(files.storage())));
    this.#view = new Remembered(clock, KEPT_MS, () => this.#look());
  }

  view(): Promise<OverviewView> {
    return this.#view.get();
  }

  async #look(): Promise<OverviewView> {
    const {
      version,
      instanceId,
      authentication,
      clock,
      startedMs,
      state,
      address,
      isSecure,
      isMember,
      activity,
      connections,
    } = this.#parts;
    const nowMs = clock.nowMs();
    const status = this.#parts.open().status();
    const { address: host, port } = address();
    const logBytes = this.#logBytes();
    const disk = await this.#disk(logBytes);
    const certificates = this.#certificates(nowMs);
    this.#licence ??= this.#parts.licence();
    const licence = await this.#licence;
    const refusal = licence.refusal('AUTO_SCAVENGE', nowMs);
    return {
      time: timeText(nowMs),
      node: {
        version,
        instanceId,
        state: state(),
        address: `${host.includes(':') ? `[${host}]` : host}:${port}`,
        isSecure,
        authentication,
        startedAt: timeText(startedMs),
        uptimeSeconds: Math.max(0, nowMs - startedMs) / 1_000,
        isMember,
      },
      log: {
        end: status.checkpoints.writer,
        bytes: logBytes,
        lastCommitPosition: status.lastCommitPosition,
        chunks: status.chunks,
        indexTables: status.indexTables,
        indexEntries: status.indexTableEntries,
        indexEntriesInMemory: status.indexEntriesInMemory,
        bytesUnproven: status.proofs?.bytesUnproven ?? null,
        appendsQueued: status.streams.appendsQueued,
        subscriptions: status.streams.subscriptions,
      },
      disk,
      activity: activity.view(),
      process: this.#parts.process(),
      connections: await connections(),
      certificates,
      licence: {
        source: licence.source,
        expiresAt: licence.expiresAtMs === null ? null : timeText(licence.expiresAtMs),
        refusal,
      },
      warnings: warningsOf({
        nowMs,
        isInsecure: authentication === 'insecure',
        hasDefaultPasswords: await this.#parts.hasDefaultPasswords(),
        hasTls: isSecure,
        isReachable: this.#parts.isReachable,
        isInMemory: this.#parts.isInMemory,
        certificate: this.#parts.certificates(),
        licence: { refusal, expiresAtMs: licence.expiresAtMs },
        disk:
          disk === null
            ? null
            : {
                totalBytes: disk.totalBytes,
                freeBytes: disk.freeBytes,
                chunkSizeBytes: this.#parts.open().chunkMap(this.#chunks.version).chunkSize,
              },
        backups: this.#parts.backups(),
        wasScavenged: await this.#isScavenged(),
        chunks: status.chunks,
        isAuditFailing: this.#parts.audit()?.failing ?? false,
        ...this.#cluster(),
        logLevel: this.#parts.logLevel(),
        configuration: this.#parts.configuration(),
      }),
    };
  }

  /** Bytes of the chunk files. */
  #logBytes(): number {
    const { version, logEnd, chunks } = this.#parts.open().chunkMap(this.#chunks.version);
    if (chunks !== null) this.#chunks = { version, bytes: chunks.reduce((sum, { bytes }) => sum + bytes, 0), logEnd };
    return this.#chunks.bytes + logEnd - this.#chunks.logEnd;
  }

  async #disk(chunkBytes: number): Promise<DiskView | null> {
    const space = await this.#space.get();
    if (space === null) return null;
    const { disk, totalBytes, availableBytes, usedBytes } = space;
    const indexBytes = await this.#indexBytes.get();
    return {
      folder: disk,
      totalBytes,
      freeBytes: availableBytes,
      usedBytes,
      chunkBytes,
      indexBytes,
      otherBytes: Math.max(0, usedBytes - chunkBytes - indexBytes),
    };
  }

  /** Days are counted from now. */
  #certificates(nowMs: number): readonly LoadedCertificate[] {
    const loaded = this.#parts.certificates()?.loaded ?? [];
    return loaded
      .slice(0, CERTIFICATES_MAX)
      .map((each) => ({ ...each, daysLeft: Math.floor((Date.parse(each.notAfter) - nowMs) / DAY_MS) }));
  }

  /** What happened once has happened. */
  async #isScavenged(): Promise<boolean> {
    if (this.#wasScavenged) return true;
    this.#wasScavenged = (await this.#parts.open().store.streamInfo(HISTORY_STREAM)).lastEventNumber >= 0;
    return this.#wasScavenged;
  }

  #cluster(): { readonly deadMembers: readonly string[]; readonly bucketSilentMs: number } {
    if (!this.#parts.isMember) return { deadMembers: [], bucketSilentMs: 0 };
    const members = this.#parts.members();
    const self = members.find(({ instanceId }) => instanceId === this.#parts.instanceId);
    return {
      deadMembers: members
        .filter(({ asMember }) => asMember?.isAlive === false)
        .map(({ host, port }) => `${host}:${port}`),
      bucketSilentMs: self?.asMember?.bucketSilentMs ?? 0,
    };
  }
}

/** What is found out again only when it is older than so long; everybody waits for the same finding. */
class Remembered<T> {
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  readonly #forMs: number;
  readonly #find: () => Promise<T>;
  #found: Promise<T> | null = null;
  #atMs = 0;

  constructor(clock: Pick<Clock, 'monotonicMs'>, forMs: number, find: () => Promise<T>) {
    this.#clock = clock;
    this.#forMs = forMs;
    this.#find = find;
  }

  get(): Promise<T> {
    const nowMs = this.#clock.monotonicMs();
    if (this.#found !== null && nowMs - this.#atMs < this.#forMs) return this.#found;
    const found = this.#find();
    this.#found = found;
    this.#atMs = nowMs;
    // What failed is not remembered.
    found.catch(() => {
      if (this.#found === found) this.#found = null;
    });
    return found;
  }
}

/** Of the files of the index. One that goes meanwhile has none any more. */
async function bytesIn(storage: Storage): Promise<number> {
  let bytes = 0;
  for (const folder of INDEX_FOLDERS)
    for (const name of await listed(storage, folder)) bytes += (await storage.size(`${folder}/${name}`)) ?? 0;
  return bytes;
}

async function listed(storage: Storage, folder: string): Promise<readonly string[]> {
  try {
    return await storage.list(folder);
  } catch (error) {
    if (isSkuaError(error, 'file_not_found')) return [];
    throw error;
  }
}

function timeText(ms: number): string {
  return new Date(Math.floor(ms)).toISOString();
}
