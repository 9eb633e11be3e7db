import { useState } from 'preact/hooks';
import { post, put } from '../../api/page-client.ts';
import type { ApiError } from '../../api/problem-text.ts';
import { goTo, pathTo } from '../../lib/router.ts';
import { Button } from '../../parts/button.tsx';
import { Card } from '../../parts/card.tsx';
import { Field, Form, Select, Toggle } from '../../parts/form.tsx';
import type { Values } from '../../parts/form.tsx';
import { toast } from '../../parts/toast.tsx';
import { connectorPath, stateOf, violationsOf } from './connector-list.ts';
import type { Connector } from './connector-list.ts';
import type { ConfiguredDocument, SettingsDocument } from '../../../../../handlers/documents/connectors.ts';
import { GENERIC, schemeOf, SCHEMES } from './scheme-fields.ts';
import { ScriptEditor } from './script-editor.tsx';
import { SecretField } from './secret-field.tsx';
import {
  complaintsOf,
  decodedScript,
  DEFAULT_HEADERS,
  fieldOf,
  listOf,
  SECOND_SECRET,
  SECRET,
  settingsOf,
  SKIPPED,
} from './settings-form.ts';
import { Trial } from './trial.tsx';

const FIRST_SCRIPT = `// Says where a call goes: the stream, and the type of its event.
// body is the parsed payload; headers have lower-cased names.
// Return null to skip a call: nothing is written then.
function route({ body, headers, path, query }) {
  return { stream: 'orders', schema: headers['x-event'] };
}
`;
const NO_SETTINGS: SettingsDocument = {};

/** Where the script is told of an error that the node found, beside the fields. */
const SCRIPT_FIELD = 'script';

export interface ConnectorFormProps {
  /** Null for a new one. */
  readonly connector: Connector | null;
  readonly onDone: (warnings: readonly string[]) => void;
  readonly onCancel?: () => void;
}

/** All settings of a connector, with its script and a trial of that beside each other. */
export function ConnectorForm({ connector, onDone, onCancel }: ConnectorFormProps) {
  const stored = connector?.settings ?? NO_SETTINGS;
  const isNew = connector === null;
  const isRunning = connector !== null && stateOf(connector).isRunning;
  const [script, setScript] = useState(isNew ? FIRST_SCRIPT : decodedScript(stored['routingScript']));
  const [line, setLine] = useState<number | null>(null);
  const [scheme, setScheme] = useState(stored['signature:scheme'] ?? '');
  const [streams, setStreams] = useState((listOf(stored, 'streams') ?? []).join('\n'));
  const [isWaiting, setWaiting] = useState(stored['waitForWrite'] === 'true');
  const [isDeduplicated, setDeduplicated] = useState(stored['deduplication:enabled'] !== 'false');
  const known = schemeOf(scheme);

  const submit = async (values: Values) => {
    const settings = settingsOf(values, stored);
    const id = connector?.connectorId ?? values['id']!;
    const path = connectorPath(id);
    const { warnings = [] } = isNew
      ? await post<ConfiguredDocument>(path, { name: values['name']?.trim() ?? '', settings })
      : await put<ConfiguredDocument>(`${path}/settings`, { settings });
    if (isNew && values['start'] === 'true') await post(`${path}/start`);
    if (isRunning && values['restart'] === 'true') {
      await post(`${path}/stop`);
      await post(`${path}/start`);
    }
    toast(
      isNew
        ? `${id} is created`
        : isRunning && values['restart'] !== 'true'
          ? 'Saved. It takes effect at the next start'
          : 'Saved',
    );
    onDone(warnings);
    if (isNew) goTo(pathTo('webhooks', id));
  };
  const wrongLine = (error: ApiError) => setLine(Number(/\(line (\d{1,9}),/.exec(textOf(error))?.[1] ?? 0) || null);
  return (
    <Form
      validate={(values) => complaintsOf(values, isNew)}
      errorText={textOf}
      errorField={(error) => {
        wrongLine(error);
        const violations = violationsOf(error);
        const field = violations.length === 1 ? fieldOf(violations[0]!.field) : null;
        // The editor has no place for words below it; they stand above the buttons.
        return field === SCRIPT_FIELD ? null : field;
      }}
      onSubmit={submit}
      buttons={(isBusy) => (
        <>
          {onCancel !== undefined && <Button onClick={onCancel}>Cancel</Button>}
          <Button type="submit" kind="primary" isBusy={isBusy}>
            {isNew ? 'Create connector' : 'Save settings'}
          </Button>
        </>
      )}
    >
      {isNew && (
        <Card title="Connector">
          <div class="form-columns">
            <Field
              name="id"
              label="Id"
              isRequired
              isFocused
              isMono
              spellcheck={false}
              maxLength={50}
              about={
                <>
                  Part of the address that senders post to: <code>/webhook/id</code>. It can't be changed.
                </>
              }
            />
            <Field name="name" label="Name" maxLength={50} about="Display name; defaults to the id." />
          </div>
        </Card>
      )}
      <Card title="Routing script" note="Runs for each call, isolated from the node, for at most 100 ms">
        <div class="script-columns">
          <div class="stack tight">
            <ScriptEditor
              name="script"
              label="Routing script"
              value={script}
              markedLine={line}
              rows={18}
              onInput={(text) => {
                setScript(text);
                setLine(null);
              }}
            />
            <p class="field-about">
              <code>route</code> gets <code>body</code>, its <code>text</code>, <code>headers</code>, <code>path</code>{' '}
              and <code>query</code>, and returns <code>stream</code> and optionally <code>schema</code>: the event
              type, by default <code>WebhookReceived</code>. Streams starting with <code>$</code> are system streams.
            </p>
          </div>
          <Trial
            id={connector?.connectorId ?? null}
            script={script}
            streams={streams}
            stream={firstStream(streams)}
            onLine={setLine}
          />
        </div>
      </Card>
      <Card title="Who may call">
        <div class="stack">
          <Select
            name="scheme"
            label="Signature"
            value={scheme}
            onChange={setScheme}
            options={[
              { value: '', label: 'None: anyone may call' },
              ...SCHEMES.map(({ name, label, header }) => ({
                value: name,
                label: header === null ? label : `${label} – ${header}`,
              })),
            ]}
            about={
              known?.about ??
              'Without a signature anyone who finds the address can write events. Choose the signature scheme of the sender, if it has one.'
            }
          />
          {known !== null && (
            <div class="form-columns">
              <SecretField
                key={`${known.name} 1`}
                name={SECRET}
                label="Secret"
                isStored={SECRET in stored}
                about="Shared with the sender. The node stores it encrypted with its data protection token and never shows it."
              />
              <SecretField
                key={`${known.name} 2`}
                name={SECOND_SECRET}
                label="Second secret"
                isStored={SECOND_SECRET in stored}
                isOptional
                about="Also accepted, while the sender changes secrets. Afterwards, make the new one the secret and remove this one."
              />
              {known.hasTime && (
                <Field
                  name="timestampTolerance"
                  label="Clock tolerance"
                  value={stored['signature:timestampTolerance'] ?? '00:05:00'}
                  isMono
                  about="Calls signed further in the past or future are refused, which prevents replays. hh:mm:ss."
                />
              )}
            </div>
          )}
          {known?.name === GENERIC && (
            <div class="form-columns">
              <Field
                name="signatureHeader"
                label="Header"
                isRequired
                isMono
                value={stored['signature:header'] ?? ''}
                placeholder="X-Signature"
                about="The header that holds the signature."
              />
              <Field
                name="signaturePrefix"
                label="Prefix"
                isMono
                value={stored['signature:prefix'] ?? ''}
                placeholder="sha256="
                about="Text before the signature in that header."
              />
              <Select
                name="signatureEncoding"
                label="Encoding"
                value={stored['signature:encoding'] ?? 'hex'}
                options={['hex', 'base64'].map(optionOf)}
              />
              <Select
                name="signatureHash"
                label="Hash"
                value={stored['signature:hash'] ?? 'sha256'}
                options={['sha256', 'sha1', 'sha512'].map(optionOf)}
              />
            </div>
          )}
        </div>
      </Card>
      <Card title="Events">
        <div class="form-columns">
          <Field
            name="streams"
            label="Streams it may write to"
            rows={3}
            isMono
            value={streams}
            onInput={setStreams}
            spellcheck={false}
            placeholder={'orders\norder-*'}
            about={
              <>
                One per line; <code>*</code> at the end for a prefix. If empty: every stream that does not start with{' '}
                <code>$</code>.
              </>
            }
          />
          <Field
            name="allowedHeaders"
            label="Headers to keep"
            rows={3}
            isMono
            value={(listOf(stored, 'allowedHeaders') ?? DEFAULT_HEADERS).join('\n')}
            spellcheck={false}
            about="One per line. They are stored in the event's metadata; others are never stored."
          />
        </div>
      </Card>
      <Card title="Answers">
        <div class="stack">
          <div class="form-columns">
            <div class="stack tight">
              <Toggle
                name="waitForWrite"
                label="Answer when the event is durable"
                isOn={isWaiting}
                onChange={setWaiting}
                about="Answers 201 then. Otherwise 202 as soon as the call is accepted; events that can't be written afterwards are listed under Rejections."
              />
            </div>
            {isWaiting && (
              <Field
                name="confirmationTimeout"
                label="Timeout"
                value={stored['confirmationTimeout'] ?? '00:00:30'}
                isMono
                about="Answers 504 after that; the event may still be written. hh:mm:ss."
              />
            )}
            <Select
              name="skippedStatus"
              label="Answer to skipped calls"
              value={stored['skippedStatus'] ?? '400'}
              options={SKIPPED.map(optionOf)}
              about="Senders treat 400 as a failure: some show it as an error, some retry."
            />
          </div>
          <Toggle
            name="logging"
            label="Log refused calls"
            isOn={stored['logging:enabled'] !== 'false'}
            about="In the node's log, without header values. Rejections are kept either way."
          />
        </div>
      </Card>
      <Card title="Repeated deliveries">
        <div class="stack">
          <Toggle
            name="deduplication"
            label="Write each delivery once"
            isOn={isDeduplicated}
            onChange={setDeduplicated}
            about="Senders retry deliveries that were not answered in time. A delivery is recognised by the id its sender gives it."
          />
          {isDeduplicated && (
            <div class="form-columns">
              <Field
                name="deduplicationHeader"
                label="Delivery id header"
                isMono
                value={stored['deduplication:header'] ?? ''}
                about="Needed where the scheme does not define one; otherwise repeats are not recognised."
              />
              <Field
                name="deduplicationMaxAge"
                label="Remember for"
                isMono
                value={stored['deduplication:maxAge'] ?? '72:00:00'}
                about="hh:mm:ss; at most 30 days."
              />
              <Field
                name="deduplicationMaxCount"
                label="Remember at most"
                type="number"
                min={1}
                max={1_000_000}
                step={1}
                value={stored['deduplication:maxCount'] ?? '1000000'}
                about="Deliveries; the oldest are forgotten first."
              />
            </div>
          )}
        </div>
      </Card>
      {(isNew || isRunning) && (
        <Card>
          {isNew ? (
            <Toggle name="start" label="Start now" isOn about="Otherwise it is created but stays stopped." />
          ) : (
            <Toggle
              name="restart"
              label="Restart now to apply this"
              isOn
              about="Otherwise it takes effect at the next start. Calls during the restart get 404 or 503, and senders retry them."
            />
          )}
        </Card>
      )}
    </Form>
  );
}

function optionOf(value: string): { readonly value: string; readonly label: string } {
  return { value, label: value };
}

function firstStream(streams: string): string {
  return (
    streams
      .split('\n')
      .map((each) => each.trim())
      .find((each) => each !== '' && !each.endsWith('*')) ?? ''
  );
}

function textOf(error: ApiError): string {
  const violations = violationsOf(error);
  return violations.length > 0
    ? violations
        .map(({ field, description }) =>
          fieldOf(field) === null || violations.length > 1 ? `${field}: ${description}` : description,
        )
        .join(' ')
    : error.message;
}
