import type { Anchor } from '../../core/integrity/format/chain-layout.ts';
import type { TraceLocation } from '../../core/backup/erasure-check/erasure-check.ts';
import type { ErasureFinding } from '../../core/scavenge/api.ts';
import { counted } from '../../infra/runtime/io.ts';

/** An entry of the audit comes this long behind the delete of which it tells at most, in milliseconds. */
const AUDIT_REACH_MS = 60_000;

type Found<Name extends keyof ErasureFinding> = NonNullable<ErasureFinding[Name]>;

/** A delete of the stream: when, and by whom where the log has an audit. */
interface Deletion extends Found<'deletion'> {
  readonly by: string | null;
}

/** What is on record about an erasure beside what the search found: who asked for it and when. */
export class ErasureRecord {
  readonly #redactions = new Map<string, Found<'mark'>>();
  readonly #deletions = new Map<string, Found<'deletion'>>();
  readonly #audited = new Map<string, Found<'audited'>>();

  /** Copies of one record lie in several files. */
  note({ mark, deletion, audited }: ErasureFinding): void {
    if (mark !== undefined) this.#redactions.set(JSON.stringify(mark), mark);
    if (deletion !== undefined) this.#deletions.set(JSON.stringify(deletion), deletion);
    if (audited !== undefined) this.#audited.set(JSON.stringify(audited), audited);
  }

  get redactions(): readonly Found<'mark'>[] {
    return [...this.#redactions.values()];
  }

  get deletions(): readonly Deletion[] {
    const audited = [...this.#audited.values()];
    return [...this.#deletions.values()].map((deletion) => {
      const entries = audited
        .filter(({ isHard }) => isHard === deletion.isHard)
        .map((entry) => ({ entry, ms: Math.abs(Date.parse(entry.time) - Date.parse(deletion.time ?? '')) }))
        .filter(({ ms }) => ms <= AUDIT_REACH_MS)
        .toSorted((a, b) => a.ms - b.ms);
      return { ...deletion, by: entries[0]?.entry.by ?? null };
    });
  }

  lines(stream: string | null): readonly string[] {
    return [
      ...this.redactions.map(
        ({ stream: name, number, by, reason, time }) =>
          `Event ${number} of ${JSON.stringify(name)} was redacted by ${by} at ${time}: ${reason}`,
      ),
      ...this.deletions.map(
        ({ isHard, time, by }) =>
          `${JSON.stringify(stream)} was ${isHard ? 'hard-deleted' : 'soft-deleted'} ${time === null ? 'at an unknown time' : `at ${time}`}${by === null ? '; the log does not say by whom: the audit log does, if one is kept (--audit-log, --audit-stream)' : ` by ${by}`}`,
      ),
    ];
  }
}

/** The chain of hashes of what was searched, or why there is none and what begins one. */
export type ChainState = { readonly anchor: Omit<Anchor, 'madeAt'> } | { readonly anchor: null; readonly why: string };

export const NO_CHAIN_KEPT =
  'No hash chain is kept, so nothing proves that the rest of the log was not changed: `skua start --proof-chain` starts one';
export const CHAIN_ELSEWHERE =
  'Hash chains are kept in data directories: `skua prove-erased --db DIR` shows the anchor of one';

export function chainText(state: ChainState): string {
  const { anchor } = state;
  if (anchor === null) return `${state.why}.`;
  const { chain, position, link, receipts, receiptsHead } = anchor;
  return `Hash chain ${chain}: anchor at position ${position}, hash ${link}; ${counted(receipts, 'receipt')} of what was removed, last hash ${receiptsHead}. \`skua proof verify\` checks it.`;
}

/** A backup goes by no date, but when it is pruned. */
export function remainText(places: readonly TraceLocation[]): readonly string[] {
  return places.map((place) =>
    place.kind === 'backup'
      ? `Until it is pruned: backup ${place.backupId} of ${place.madeAt}, ${counted(place.traces, 'trace')}`
      : `Until the next prune: content that no backup needs, ${counted(place.traces, 'trace')}`,
  );
}
