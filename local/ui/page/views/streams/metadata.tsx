import { useEffect, useState } from 'preact/hooks';
import { errorOf } from '../../api/problem-text.ts';
import type { ApiError } from '../../api/problem-text.ts';
import { session } from '../../api/page-session.ts';
import { ExactNumber, formatJson, parseJson } from '../../lib/json.ts';
import type { Json } from '../../lib/json.ts';
import { Button } from '../../parts/button.tsx';
import { Card } from '../../parts/card.tsx';
import { JsonView } from '../../parts/code.tsx';
import { EmptyState, ErrorState, Notice } from '../../parts/empty-state.tsx';
import { Field, Form, Select } from '../../parts/form.tsx';
import type { Complaints, Values } from '../../parts/form.tsx';
import { Skeleton } from '../../parts/loading.tsx';
import { Time } from '../../parts/time.tsx';
import { toast } from '../../parts/toast.tsx';
import { AccessField, accessIn } from './access-field.tsx';
import { Refused } from './refused.tsx';
import { Retention } from './retention.tsx';
import { unitOf, UNITS } from './span.ts';
import { formatMetadata, readMetadata, RIGHT_NAMES, writeMetadata } from './stream-metadata.ts';
import type { MetadataChange, Right, StreamMetadata } from './stream-metadata.ts';

/** What limits a stream and which users may do what with it, to be read and changed. */
export function Metadata({ stream }: { readonly stream: string }) {
  const [metadata, setMetadata] = useState<StreamMetadata | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const load = () =>
    readMetadata(stream).then(
      (read) => {
        setMetadata(read);
        setError(null);
      },
      (thrown: unknown) => setError(errorOf(thrown)),
    );
  useEffect(() => void load(), [stream]);

  if (error !== null) {
    if (error.code === 'access_denied')
      return (
        <Card>
          <Refused stream={stream} error={error} right="metadataRead" />
        </Card>
      );
    if (error.code === 'stream_deleted')
      return (
        <Card>
          <EmptyState icon="trash" title="This stream is hard-deleted">
            It has no metadata any more.
          </EmptyState>
        </Card>
      );
    return (
      <Card>
        <ErrorState error={error} what="The metadata" onRetry={() => void load()} />
      </Card>
    );
  }
  if (metadata === null)
    return (
      <Card>
        <Skeleton lines={6} />
      </Card>
    );
  return (
    <div class="columns metadata">
      <Card title="Change">
        {/* What was written since is another form. */}
        <Editor
          key={metadata.version}
          stream={stream}
          metadata={metadata}
          onSaved={(saved) => {
            setMetadata(saved);
            toast('Metadata saved');
          }}
          onReload={setMetadata}
        />
      </Card>
      <div class="stack">
        <Card title="What this means">
          <Retention stream={stream} metadata={metadata} />
        </Card>
        <Card
          title="As stored"
          note={
            metadata.version < 0 ? (
              'nothing yet'
            ) : (
              <>
                version {metadata.version}, <Time at={metadata.writtenAt} />
              </>
            )
          }
        >
          {metadata.version < 0 ? (
            <p class="muted">
              The stream has no metadata of its own: all events are kept, and the node's defaults decide who may do
              what.
            </p>
          ) : (
            <JsonView text={metadata.text} name="metadata.json" />
          )}
        </Card>
      </div>
    </div>
  );
}

interface EditorProps {
  readonly stream: string;
  readonly metadata: StreamMetadata;
  readonly onSaved: (saved: StreamMetadata) => void;
  readonly onReload: (current: StreamMetadata) => void;
}

function Editor({ stream, metadata, onSaved, onReload }: EditorProps) {
  /** What another client has written since the form was filled. */
  const [theirs, setTheirs] = useState<StreamMetadata | null>(null);
  const expected = theirs?.version ?? metadata.version;
  const hasSecurity = session.value?.hasSecurity !== false;
  const unit = unitOf(metadata.maxAge ?? UNITS[0].seconds);
  return (
    <Form
      validate={complaintsAbout}
      onSubmit={async (values) => {
        try {
          await writeMetadata(stream, formatMetadata(changeIn(values, metadata)), expected);
        } catch (thrown) {
          const error = errorOf(thrown);
          if (error.code !== 'wrong_expected_version') throw error;
          setTheirs(await readMetadata(stream));
          return;
        }
        onSaved(await readMetadata(stream));
      }}
      buttons={(isBusy) => (
        <Button kind={theirs === null ? 'primary' : 'danger'} type="submit" isBusy={isBusy}>
          {theirs === null ? 'Save' : 'Save mine anyway'}
        </Button>
      )}
    >
      <fieldset class="stack">
        <legend class="group-legend">Retention</legend>
        <div class="field-pair">
          <Field
            name="maxCount"
            label="Keep at most"
            about="Newest events to keep; empty for all."
            type="number"
            min={1}
            step={1}
            value={textOf(metadata.maxCount)}
          />
          <div class="age">
            <Field
              name="maxAge"
              label="Keep for"
              about="Empty: no limit."
              type="number"
              min={1}
              step={1}
              value={metadata.maxAge === null ? '' : String(metadata.maxAge / unit.seconds)}
            />
            <Select
              name="maxAgeUnit"
              label="Unit"
              value={unit.name}
              options={UNITS.map(({ name }) => ({ value: name, label: name }))}
            />
          </div>
          <Field
            name="truncateBefore"
            label="Truncate before number"
            about={
              metadata.isDeleted
                ? 'The stream is deleted: all events are truncated. A number brings back the events from there on that no scavenge has removed.'
                : 'Events with lower numbers can no longer be read.'
            }
            type="number"
            min={0}
            step={1}
            value={textOf(metadata.truncateBefore)}
          />
          <Field
            name="cacheControl"
            label="Cache for"
            about="Seconds for which browsers and proxies may cache the newest page."
            type="number"
            min={1}
            step={1}
            value={textOf(metadata.cacheControl)}
          />
        </div>
      </fieldset>
      <fieldset class="stack">
        <legend class="group-legend">Who may do what</legend>
        {!hasSecurity && (
          <p class="muted small">The node runs without security: these lists take effect once it is on.</p>
        )}
        {RIGHT_NAMES.map((right) => (
          <AccessField key={right} right={right} names={metadata.acl[right]} />
        ))}
      </fieldset>
      <Field
        name="others"
        label="Custom keys"
        about="A JSON object. The node ignores custom keys and keeps them as they are."
        rows={4}
        isMono
        spellcheck={false}
        value={Object.keys(metadata.others).length === 0 ? '' : formatJson(metadata.others, 2)}
      />
      {theirs !== null && (
        <Notice
          tone="warn"
          title="The metadata was changed by someone else"
          action={<Button onClick={() => onReload(theirs)}>Take theirs</Button>}
        >
          <p>
            Yours are not saved. Version {theirs.version} is what the stream has now
            {theirs.writtenAt !== null && (
              <>
                , written <Time at={theirs.writtenAt} />
              </>
            )}
            :
          </p>
          <JsonView text={theirs.text === '' ? '{}' : theirs.text} name="theirs.json" />
        </Notice>
      )}
    </Form>
  );
}

function textOf(value: number | null): string {
  return value === null ? '' : String(value);
}

function complaintsAbout(values: Values): Complaints {
  const complaints: Record<string, string> = {};
  for (const name of ['maxCount', 'maxAge', 'truncateBefore', 'cacheControl']) {
    const text = values[name]!;
    if (text !== '' && !Number.isSafeInteger(Number(text))) complaints[name] = 'Enter a whole number.';
  }
  if (othersIn(values) === null) complaints['others'] = 'Enter a JSON object, such as {"owner": "billing"}.';
  return complaints;
}

/** Null for what is no object. */
function othersIn(values: Values): Readonly<Record<string, Json>> | null {
  const text = values['others']!.trim();
  if (text === '') return {};
  const value = parseJson(text);
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof ExactNumber)
    ? (value as Readonly<Record<string, Json>>)
    : null;
}

function changeIn(values: Values, { isDeleted }: StreamMetadata): MetadataChange {
  const number = (name: string) => (values[name] === '' ? null : Number(values[name]));
  const { seconds } = UNITS.find(({ name }) => name === values['maxAgeUnit']) ?? UNITS[3];
  const age = number('maxAge');
  const acl: Partial<Record<Right, readonly string[]>> = {};
  for (const right of RIGHT_NAMES) {
    const names = accessIn(values, right);
    if (names !== undefined) acl[right] = names;
  }
  const truncateBefore = number('truncateBefore');
  return {
    maxCount: number('maxCount'),
    maxAge: age === null ? null : age * seconds,
    truncateBefore,
    isDeleted: isDeleted && truncateBefore === null,
    cacheControl: number('cacheControl'),
    acl,
    others: othersIn(values) ?? {},
  };
}
