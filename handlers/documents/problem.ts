import type { ErrorCode } from '../../core/base/errors.ts';

/** A failure as it is sent (RFC 9457), but for those of connector routes (`RpcStatusDocument`). */
export interface ProblemDocument {
  /**
   * Stable; made for programs. `internal` where no caller can do anything about it, `writer_stopped` for `sync_failed`.
   */
  readonly code: ErrorCode | 'internal' | 'writer_stopped';
  readonly title: string;
  /** What is wrong, and what to do. */
  readonly detail: string;
  /** More on what to do, where `detail` is a text that tools compare. */
  readonly hint?: string;
  /** What it is about. */
  readonly scavengeId?: string;
  readonly backupId?: string;
  /** Of metadata: the key that is not what it must be; null for all of them. */
  readonly key?: string | null;
  /** What a program needs to react, of the codes of appends and reads that promise it (PROMISED_DATA). */
  readonly data?: Readonly<Record<string, unknown>>;
  /** Of an order that comes late: the attempt that was seen before. */
  readonly seen?: number;
  /** What could not be loaded, and why. */
  readonly file?: string | null;
  readonly reason?: string;
  /** Of users routes: false, and the name that the reference has for the failure. */
  readonly success?: boolean;
  readonly error?: string;
}
