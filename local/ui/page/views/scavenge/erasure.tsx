import { useState } from 'preact/hooks';
import { del, get, post } from '../../api/page-client.ts';
import { usePolled } from '../../api/polled.ts';
import { errorOf } from '../../api/problem-text.ts';
import { download } from '../../lib/save-as.ts';
import { bytesText, countText, durationText, msOf, numberText } from '../../lib/format.ts';
import { Dotted } from '../../parts/dotted.tsx';
import { Badge } from '../../parts/badge.tsx';
import { Button } from '../../parts/button.tsx';
import { Card } from '../../parts/card.tsx';
import { EmptyState, ErrorState } from '../../parts/empty-state.tsx';
import { Field, Form } from '../../parts/form.tsx';
import type { Complaints, Values } from '../../parts/form.tsx';
import { Skeleton } from '../../parts/loading.tsx';
import { Progress } from '../../parts/progress.tsx';
import { Time } from '../../parts/time.tsx';
import { toast } from '../../parts/toast.tsx';
import type {
  ListedProofDocument,
  ProofDocument,
  ProofsDocument,
  ReportDocument,
} from '../../../../../handlers/documents/scavenging.ts';

const PATH = '/admin/erasure';
const EVERY_MS = 2_000;
const IDS_MAX = 1_000;
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/** Findings that are shown; the report has more. */
const SHOWN_MAX = 20;

/** Proves that nothing of a stream or of events is left in any file of this node. */
export function Erasure() {
  const polled = usePolled<ProofsDocument>(PATH, EVERY_MS);
  const data = polled.data.value;
  const error = polled.error.value;
  if (data === null && error?.status === 404)
    return (
      <Card>
        <EmptyState icon="erase" title="Not available on this node">
          Nodes with their log in object storage and in-memory nodes have no files of their own to search.
        </EmptyState>
      </Card>
    );
  if (data === null)
    return (
      <Card>
        {error === null ? (
          <Skeleton />
        ) : (
          <ErrorState error={error} what="The proofs" onRetry={() => void polled.refresh()} />
        )}
      </Card>
    );
  const isRunning = data.proofs.some(({ state }) => state === 'running');
  return (
    <div class="columns">
      <Card title="Prove erasure">
        <Form
          validate={complaintsOf}
          onSubmit={async (values) => {
            const events = idsOf(values['events']);
            const stream = values['stream'] ?? '';
            await post(PATH, { ...(stream !== '' && { stream }), ...(events.length > 0 && { events }) });
            await polled.refresh();
          }}
          buttons={(isBusy) => (
            <Button
              type="submit"
              kind="primary"
              icon="shield"
              isBusy={isBusy}
              isDisabled={isRunning}
              title={isRunning ? 'One at a time' : undefined}
            >
              Start the proof
            </Button>
          )}
        >
          <p class="muted">
            Every file of this node is searched for the name of the stream and for the ids of the events. Delete first,
            then scavenge, then prove. Scavenges wait while a proof runs. Check backups and other members separately.
          </p>
          <Field
            name="stream"
            label="Stream"
            isMono
            spellcheck={false}
            about="Its exact name. Needed unless there are event ids."
          />
          <Field
            name="events"
            label="Event ids"
            rows={4}
            isMono
            spellcheck={false}
            placeholder="6f0d6a0e-3f0c-4a0b-9d07-6f1c5a7f2b11"
            about={`Ids of events that must be gone, at most ${numberText(IDS_MAX)}, separated by spaces, commas or new lines.`}
          />
        </Form>
      </Card>
      <Card title="Proofs" note="most recent, since the node started">
        {data.proofs.length === 0 ? (
          <EmptyState icon="shield" title="No proofs yet">
            Proofs are listed here with their results and can be saved as reports.
          </EmptyState>
        ) : (
          <ul class="proofs">
            {data.proofs.map((proof) => (
              <li key={proof.proofId}>
                <ProofItem proof={proof} onStopped={() => polled.refresh()} />
              </li>
            ))}
          </ul>
        )}
      </Card>
    </div>
  );
}

function idsOf(text = ''): readonly string[] {
  return text.split(/[\s,;]+/).filter((id) => id !== '');
}

function complaintsOf({ stream = '', events }: Values): Complaints {
  const ids = idsOf(events);
  const wrong = ids.find((id) => !UUID.test(id));
  if (wrong !== undefined)
    return {
      events: `“${wrong.slice(0, 60)}” is not an event id. An event id looks like 6f0d6a0e-3f0c-4a0b-9d07-6f1c5a7f2b11.`,
    };
  if (ids.length > IDS_MAX) return { events: `Give at most ${numberText(IDS_MAX)} ids at a time.` };
  return stream === '' && ids.length === 0 ? { stream: 'Name a stream, or give ids of events.' } : {};
}

function whatOf({ stream, events }: ListedProofDocument): string {
  return [stream, events > 0 ? countText(events, 'event id') : null].filter((part) => part !== null).join(' and ');
}

function ProofItem({
  proof,
  onStopped,
}: {
  readonly proof: ListedProofDocument;
  readonly onStopped: () => Promise<void>;
}) {
  const { proofId, state, report, error, bytesDone, bytesTotal, elapsedSeconds } = proof;
  const [findings, setFindings] = useState<ReportDocument['findings'] | null>(null);
  const path = `${PATH}/${encodeURIComponent(proofId)}`;
  const told = async (work: () => Promise<void>) => {
    try {
      await work();
    } catch (thrown) {
      toast(errorOf(thrown).message, 'bad');
    }
  };
  const save = () =>
    told(async () => {
      const whole = await get<ProofDocument>(path);
      download(`erasure-${proofId}.json`, `${JSON.stringify(whole, null, 2)}\n`);
    });
  const left = bytesDone > 0 && bytesTotal > bytesDone ? (elapsedSeconds * (bytesTotal - bytesDone)) / bytesDone : null;
  return (
    <article class="stack tight">
      <div class="row spread wrap">
        <strong class="break">{whatOf(proof)}</strong>
        {state === 'running' ? (
          <Button
            isSmall
            icon="stop"
            onClick={() =>
              void told(async () => {
                await del(path);
                await onStopped();
              })
            }
          >
            Stop
          </Button>
        ) : (
          <Badge
            tone={state === 'failed' ? 'bad' : state === 'aborted' ? 'warn' : report?.isErased === true ? 'ok' : 'bad'}
          >
            {state === 'failed'
              ? 'failed'
              : state === 'aborted'
                ? 'stopped'
                : report?.isErased === true
                  ? 'erased'
                  : 'not erased'}
          </Badge>
        )}
      </div>
      {state === 'running' && (
        <Progress
          label={`Proof of ${whatOf(proof)}`}
          phase="Searching"
          done={bytesTotal > 0 ? bytesDone / bytesTotal : null}
          leftMs={left === null ? null : Math.ceil(left) * 1_000}
          detail={`${bytesText(bytesDone)} of ${bytesText(bytesTotal)}`}
        />
      )}
      {error !== null && <p class="break">{error}</p>}
      {report !== null && (
        <p class="muted">
          {countText(report.files, 'file')} ({bytesText(report.bytes)}) were searched:{' '}
          {report.isErased
            ? 'no event is left'
            : `${countText(report.traces, 'trace')} of events ${report.traces === 1 ? 'is' : 'are'} left`}
          .
          {report.residues > 0 &&
            ` ${countText(report.residues, 'place')} still ${report.residues === 1 ? 'shows' : 'show'} that the stream existed, but none of its events.`}
          {report.redacted > 0 &&
            ` ${report.redacted === 1 ? 'One of them is a last event that has lost its' : `${numberText(report.redacted)} of them are last events that have lost their`} data.`}
          {report.isStreamKnown === false && ' No file mentions a stream of this name. Check the spelling.'}
        </p>
      )}
      {findings !== null && (
        <ul class="findings small">
          {findings.slice(0, SHOWN_MAX).map(({ kind, file, offset, what }, i) => (
            <li key={i} class="break">
              <Badge tone={kind === 'trace' ? 'bad' : 'plain'}>{kind}</Badge> <code>{file}</code> at{' '}
              {numberText(offset)}: {what}
            </li>
          ))}
          {findings.length > SHOWN_MAX && (
            <li class="faint">The report has {countText(findings.length - SHOWN_MAX, 'finding')} more.</li>
          )}
        </ul>
      )}
      <div class="row wrap small faint">
        <Dotted
          items={[
            <Time at={proof.startedAt} />,
            state === 'running' || msOf(proof.endedAt) === null ? null : `took ${durationText(elapsedSeconds * 1_000)}`,
          ]}
        />
        <span class="row push">
          {state !== 'running' && (
            <Button kind="quiet" isSmall icon="download" onClick={() => void save()}>
              Save the report
            </Button>
          )}
          {report !== null && report.traces + report.residues > 0 && (
            <Button
              kind="quiet"
              isSmall
              icon="search"
              onClick={() =>
                findings === null
                  ? void told(async () => setFindings((await get<ProofDocument>(path)).report?.findings ?? []))
                  : setFindings(null)
              }
            >
              {findings === null ? 'Where' : 'Hide'}
            </Button>
          )}
        </span>
      </div>
    </article>
  );
}
