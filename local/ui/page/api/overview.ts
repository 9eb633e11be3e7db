import { poller } from './polled.ts';
import type { Polled } from './polled.ts';

/** What `GET /admin/overview` says of the node that is asked. */
export interface OverviewData {
  readonly time: string;
  readonly node: { readonly version: string; readonly instanceId: string; readonly state: string; readonly address: string; readonly isSecure: boolean; readonly authentication: string; readonly startedAt: string; readonly uptimeSeconds: number; readonly isMember: boolean };
  readonly log: { readonly end: number; readonly lastCommitPosition: number; readonly chunks: number; readonly indexTables: number; readonly indexEntries: number; readonly indexEntriesInMemory: number; readonly bytesUnproven: number; readonly appendsQueued: number; readonly subscriptions: number };
  /** Null for a node in memory or on object storage. */
  readonly disk: { readonly folder: string; readonly totalBytes: number; readonly freeBytes: number; readonly usedBytes: number; readonly chunkBytes: number; readonly indexBytes: number; readonly otherBytes: number } | null;
  readonly activity: Activity;
  readonly process: { readonly cpuPercent: number | null; readonly memoryBytes: number | null; readonly heapBytes: number | null };
  readonly connections: number;
  readonly certificates: readonly Certificate[];
  readonly licence: { readonly source: 'built-in' | 'key' | 'none'; readonly expiresAt: string | null; readonly refusal: string | null };
  readonly warnings: readonly Warning[];
}

/** Rates are null until two questions lie far enough apart. */
export interface Activity {
  readonly appendsPerSecond: number | null;
  readonly eventsWrittenPerSecond: number | null;
  readonly eventsReadPerSecond: number | null;
  readonly bytesWrittenPerSecond: number | null;
  readonly bytesReadPerSecond: number | null;
  readonly requestsPerSecond: number | null;
  readonly appendP99Seconds: number | null;
  readonly requestP99Seconds: number | null;
}

export interface Certificate {
  readonly kind: string;
  readonly subject: string;
  readonly serial: string;
  readonly thumbprint: string;
  readonly notAfter: string;
  readonly daysLeft: number;
}

export interface Warning {
  readonly code: string;
  readonly severity: 'error' | 'warning' | 'info';
  readonly message: string;
  readonly todo: string;
  /** The first segment of the view that says more. */
  readonly view: string | null;
}

const PATH = '/admin/overview';

export function overview(): Polled<OverviewData> & { use(everyMs: number): () => void } {
  return poller<OverviewData>(PATH);
}
