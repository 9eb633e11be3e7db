import type { AutoScavengeStatus, NodeOutcome, ScheduledTimes } from '../../core/auto-scavenge/api.ts';
import type {
  DryRunReport,
  ErasureFinding,
  ErasureReport,
  Explanation,
  LastScavenge,
  ResumedPoint,
  ScavengeProgress,
} from '../../core/scavenge/api.ts';
import type { ErasureCheck } from '../../core/scavenge/scavenge.ts';

/**
 * Documents of scavenging as they are sent: types alone, for handlers, the OpenAPI document, the command line and the
 * page. Moments are ISO texts.
 */

/** A scavenge point of the past, up to which a run goes. */
export interface ResumedPointDocument {
  readonly why: ResumedPoint['why'];
  readonly position: number;
  readonly eventNumber: number;
  readonly effectiveNow: string;
  readonly threshold: number;
}

/** Of answers that tell what waits to go on: the point to which the next start goes. */
export interface WaitingMember {
  readonly waiting?: ResumedPointDocument;
}

/** On object storage: until when traces of what the last run removed remain, or since when none is left. */
export interface TracesMembers {
  readonly tracesUntil?: string;
  readonly tracesGone?: string;
}

/** POST `/admin/scavenge`; of a dry run that goes on, too. */
export interface StartedDocument {
  readonly scavengeId: string;
  /** Absent where it goes up to its start. */
  readonly olderPoint?: ResumedPointDocument;
}

/** GET `/admin/scavenge/current`: empty texts while none runs. */
export interface CurrentDocument extends WaitingMember, TracesMembers {
  readonly scavengeId: string;
  readonly scavengeLink: string;
  readonly olderPoint?: ResumedPointDocument;
}

/** GET `/admin/scavenge/last`: `Unknown` where none has run since the start of the node. */
export interface LastDocument extends WaitingMember, TracesMembers {
  readonly scavengeId: string;
  readonly scavengeLink: string;
  readonly scavengeResult: LastScavenge['result'] | 'Unknown';
  readonly error?: string;
  readonly olderPoint?: ResumedPointDocument;
}

/** GET `/admin/scavenge/progress`. */
export interface ProgressDocument extends Omit<ScavengeProgress, 'startedAtMs' | 'olderPoint'> {
  readonly startedAt: string;
  readonly olderPoint?: ResumedPointDocument;
}

/** GET `/admin/scavenge/dry-run/{id}`, once it has ended. */
export interface DryRunDocument extends Omit<DryRunReport, 'point' | 'waiting'>, WaitingMember {
  readonly point: Pick<ResumedPointDocument, 'position' | 'eventNumber' | 'effectiveNow'>;
}

/** GET `/admin/scavenge/explain/{stream}`. */
export interface ExplanationDocument extends Omit<Explanation, 'waiting'> {
  readonly waiting?: ResumedPointDocument & { readonly leaves: Explanation['removed'] };
}

/** GET `/auto-scavenge/enabled`: the reason where it is off. */
export interface EnabledDocument {
  readonly enabled: boolean;
  readonly reason?: string;
}

/** GET `/auto-scavenge/status`. What waits is of the node that was asked. */
export interface ScheduleDocument extends Pick<AutoScavengeStatus, 'state' | 'schedule'>, WaitingMember {
  /** A time span. */
  readonly timeUntilNextCycle: string | null;
  readonly cycle: {
    readonly clusterScavengeId: string;
    readonly startedAt: string;
    readonly nodes: readonly NodeOutcome[];
  } | null;
  readonly lastCycle: {
    readonly clusterScavengeId: string;
    readonly completedAt: string;
    readonly nodes: readonly NodeOutcome[];
  } | null;
}

/** GET `/auto-scavenge/times`. */
export interface TimesDocument extends Pick<ScheduledTimes, 'schedule' | 'zone'> {
  readonly times: readonly string[];
}

/** POST and DELETE of `/admin/erasure`. */
export interface ProofStartedDocument {
  readonly proofId: string;
}

interface ProofMembers extends Pick<ErasureCheck, 'state' | 'bytesDone' | 'bytesTotal' | 'elapsedSeconds' | 'error'> {
  readonly proofId: string;
  readonly stream: string | null;
  readonly startedAt: string;
  readonly endedAt: string | null;
}

interface ReportMembers extends Pick<ErasureReport, 'files' | 'bytes' | 'traces' | 'residues' | 'redacted'> {
  readonly isErased: boolean;
  /** Null where no stream was named. */
  readonly isStreamKnown: boolean | null;
}

/** A proof as the list has it: how many ids of events were looked for, not which. */
export interface ListedProofDocument extends ProofMembers {
  readonly events: number;
  readonly report: ReportMembers | null;
}

/** GET `/admin/erasure`. */
export interface ProofsDocument {
  readonly proofs: readonly ListedProofDocument[];
}

/** GET `/admin/erasure/{id}`. */
export interface ProofDocument extends ProofMembers {
  readonly events: readonly string[];
  readonly report: ReportDocument | null;
}

export interface ReportDocument extends ReportMembers {
  readonly findings: readonly Pick<ErasureFinding, 'kind' | 'file' | 'offset' | 'what'>[];
  /** Findings in streams that the caller may not read. */
  readonly hidden: number;
}
