import { useEffect, useState } from 'preact/hooks';
import { get } from '../../api/page-client.ts';
import { errorOf } from '../../api/problem-text.ts';
import type { ApiError } from '../../api/problem-text.ts';
import { mayUse } from '../../api/page-session.ts';
import { bytesText, countText, lastText, numberText } from '../../lib/format.ts';
import { Button } from '../../parts/button.tsx';
import { Failure, Notice } from '../../parts/empty-state.tsx';
import type { ExplanationDocument } from '../../../../../handlers/documents/scavenging.ts';
import { unitOf } from './span.ts';
import type { StreamMetadata } from './stream-metadata.ts';

/** What the metadata do, in words, and on demand what that means for the events that are there. */
export function Retention({ stream, metadata }: { readonly stream: string; readonly metadata: StreamMetadata }) {
  const [explanation, setExplanation] = useState<ExplanationDocument | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const [isBusy, setBusy] = useState(false);
  useEffect(() => {
    setExplanation(null);
    setError(null);
  }, [metadata]);
  const explain = async () => {
    setBusy(true);
    try {
      setExplanation(
        await get<ExplanationDocument>(`/admin/scavenge/explain/${encodeURIComponent(stream)}`, {
          timeoutMs: EXPLAIN_MS_MAX,
        }),
      );
      setError(null);
    } catch (thrown) {
      setError(errorOf(thrown));
    } finally {
      setBusy(false);
    }
  };
  const sentences = rulesOf(metadata);
  return (
    <div class="stack">
      <ul class="rules">
        {sentences.map((sentence) => (
          <li key={sentence}>{sentence}</li>
        ))}
      </ul>
      {metadata.isOdd && (
        <Notice tone="warn" title="Part of the metadata can't be parsed">
          Saving this form replaces it with what is shown. Until then the node ignores what it can't parse; if that is
          the access list, only administrators have access.
        </Notice>
      )}
      <div aria-live="polite" class="stack tight">
        {explanation !== null && <Explained explanation={explanation} />}
        {error !== null && <Failure error={error} />}
      </div>
      {mayUse('operators') && (
        <div class="row wrap">
          <Button isSmall icon="scavenge" isBusy={isBusy} onClick={() => void explain()}>
            {explanation === null ? 'What will the next scavenge remove?' : 'Check again'}
          </Button>
        </div>
      )}
    </div>
  );
}

/** It reads all that the stream has. */
const EXPLAIN_MS_MAX = 120_000;

function rulesOf({ maxCount, maxAge, truncateBefore, isDeleted }: StreamMetadata): readonly string[] {
  if (isDeleted)
    return [
      'It was deleted: everything up to now is truncated. The next append starts it again at the next event number.',
    ];
  const sentences = [
    maxCount === null ? null : `It keeps ${lastText(maxCount, 'event')}.`,
    maxAge === null ? null : `It keeps events for ${ageText(maxAge)}.`,
    truncateBefore === null || truncateBefore === 0
      ? null
      : `Events before number ${numberText(truncateBefore)} are truncated.`,
  ].filter((sentence) => sentence !== null);
  if (sentences.length === 0) return ['It keeps all its events.'];
  return [
    ...sentences,
    'Other events can no longer be read, and a scavenge removes them from disk. The newest event always stays.',
  ];
}

/** In the unit that the field of the metadata has: `1 day`. */
function ageText(seconds: number): string {
  const unit = unitOf(seconds);
  return countText(seconds / unit.seconds, unit.one);
}

const RULES: Readonly<Record<string, string>> = {
  $maxCount: 'beyond $maxCount',
  $maxAge: 'older than $maxAge',
  $tb: 'truncated',
  tombstone: 'of a hard-deleted stream',
  'superseded-metadata': 'older metadata',
};

function Explained({
  explanation: { removed, kept, ignored = [], lastEventNumber, waiting },
}: {
  readonly explanation: ExplanationDocument;
}) {
  const count = sum(removed.map((one) => one.count));
  const stays = sum(kept.map((one) => one.count));
  const byRule = new Map<string, number>();
  for (const one of removed) byRule.set(one.rule, (byRule.get(one.rule) ?? 0) + one.count);
  const why = [...byRule].map(([rule, some]) => `${numberText(some)} ${RULES[rule] ?? `by ${rule}`}`).join(', ');
  return (
    <>
      <Notice
        tone={count === 0 ? 'ok' : 'info'}
        title={
          count === 0
            ? 'The next scavenge removes nothing'
            : `The next scavenge removes ${countText(count, 'event')} (${bytesText(sum(removed.map((one) => one.bytes)))})`
        }
      >
        {lastEventNumber < 0 ? (
          'The stream has no events.'
        ) : (
          <>
            {count > 0 && `${why}. `}
            {countText(stays, 'event stays', 'events stay')}.
          </>
        )}
        {waiting !== undefined &&
          ' An unfinished scavenge resumes first, up to an older scavenge point; it may leave some of them.'}
      </Notice>
      {ignored.map(({ key, value, why: reason }) => (
        <Notice key={`${key} ${value}`} tone="warn">
          <span class="break">
            {key === null ? 'The metadata' : <code>{key}</code>} {key !== null && <code>{value}</code>}: {reason}.
          </span>
        </Notice>
      ))}
    </>
  );
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
