import { useState } from 'preact/hooks';
import { post, put } from '../../api/client.ts';
import type { ApiError } from '../../api/problem.ts';
import { goTo, pathTo } from '../../lib/router.ts';
import { Button } from '../../parts/button.tsx';
import { Card } from '../../parts/card.tsx';
import { Field, Form, Select, Toggle } from '../../parts/form.tsx';
import type { Values } from '../../parts/form.tsx';
import { toast } from '../../parts/toast.tsx';
import { connectorPath, stateOf, violationsOf } from './connectors.ts';
import type { Connector } from './connectors.ts';
import type { ConfiguredDocument, SettingsDocument } from '../../../../../handlers/documents/connectors.ts';
import { GENERIC, schemeOf, SCHEMES } from './schemes.ts';
import { ScriptEditor } from './script-editor.tsx';
import { SecretField } from './secret-field.tsx';
import { complaintsOf, decodedScript, DEFAULT_HEADERS, fieldOf, listOf, SECOND_SECRET, SECRET, settingsOf, SKIPPED } from './settings.ts';
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
    const { warnings = [] } = isNew ? await post<ConfiguredDocument>(path, { name: values['name']?.trim() ?? '', settings }) : await put<ConfiguredDocument>(`${path}/settings`, { settings });
    if (isNew && values['start'] === 'true') await post(`${path}/start`);
    if (isRunning && values['restart'] === 'true') {
      await post(`${path}/stop`);
      await post(`${path}/start`);
    }
    toast(isNew ? `${id} has been made` : isRunning && values['restart'] !== 'true' ? 'Saved. It counts from the next start on' : 'Saved');
    onDone(warnings);
    if (isNew) goTo(pathTo('webhooks', id));
  };
  const wrongLine = (error: ApiError) => setLine(Number(/\(line (\d{1,9}),/.exec(textOf(error))?.[1] ?? 0) || null);
  return (
    <Form
      validate={(values) => complaintsOf(values, isNew)} errorText={textOf}
      errorField={(error) => {
        wrongLine(error);
        const violations = violationsOf(error);
        const field = violations.length === 1 ? fieldOf(violations[0]!.field) : null;
        // The editor has no place for words below it; they stand above the buttons.
        return field === SCRIPT_FIELD ? null : field;
      }}
      onSubmit={submit}
      buttons={(isBusy) => <>{onCancel !== undefined && <Button onClick={onCancel}>Cancel</Button>}<Button type="submit" kind="primary" isBusy={isBusy}>{isNew ? 'Make connector' : 'Save settings'}</Button></>}
    >
      {isNew && (
        <Card title="Connector">
          <div class="form-columns">
            <Field name="id" label="Id" isRequired isFocused isMono spellcheck={false} maxLength={50} about={<>Part of the address: senders deliver to <code>/webhook/id</code>. It can't be changed.</>} />
            <Field name="name" label="Name" maxLength={50} about="For people; the id without it." />
          </div>
        </Card>
      )}
      <Card title="Routing script" note="Runs for each call, sees nothing of the node, and has 100 ms">
        <div class="script-columns">
          <div class="stack tight">
            <ScriptEditor name="script" label="Routing script" value={script} markedLine={line} rows={18} onInput={(text) => {
              setScript(text);
              setLine(null);
            }} />
            <p class="field-about"><code>route</code> gets <code>body</code>, its <code>text</code>, <code>headers</code>, <code>path</code> and <code>query</code>, and returns <code>stream</code> and, if it likes, <code>schema</code>: the type of the event, else <code>WebhookReceived</code>. Streams that begin with <code>$</code> are the system's.</p>
          </div>
          <Trial id={connector?.connectorId ?? null} script={script} streams={streams} stream={firstStream(streams)} onLine={setLine} />
        </div>
      </Card>
      <Card title="Who may call">
        <div class="stack">
          <Select
            name="scheme" label="Signature" value={scheme} onChange={setScheme} options={[{ value: '', label: 'None: whoever knows the address may call' }, ...SCHEMES.map(({ name, label, header }) => ({ value: name, label: header === null ? label : `${label} – ${header}` }))]}
            about={known?.about ?? 'Without a signature anybody who finds the address can write events. Choose how the sender signs, if it can.'}
          />
          {known !== null && (
            <div class="form-columns">
              <SecretField key={`${known.name} 1`} name={SECRET} label="Secret" isStored={SECRET in stored} about="Shared with the sender. The node keeps it sealed under its data protection token, and shows it to nobody." />
              <SecretField key={`${known.name} 2`} name={SECOND_SECRET} label="Second secret" isStored={SECOND_SECRET in stored} isOptional about="Counts, too, while the sender changes from one to the other. In the end give the new one as the secret, and remove this." />
              {known.hasTime && <Field name="timestampTolerance" label="Tolerated difference of clocks" value={stored['signature:timestampTolerance'] ?? '00:05:00'} isMono about="Calls signed longer ago, or further ahead, are refused: nobody can send an old one again. hh:mm:ss." />}
            </div>
          )}
          {known?.name === GENERIC && (
            <div class="form-columns">
              <Field name="signatureHeader" label="Header" isRequired isMono value={stored['signature:header'] ?? ''} placeholder="X-Signature" about="Which header holds the signature." />
              <Field name="signaturePrefix" label="Prefix" isMono value={stored['signature:prefix'] ?? ''} placeholder="sha256=" about="What stands in front of it there." />
              <Select name="signatureEncoding" label="Encoding" value={stored['signature:encoding'] ?? 'hex'} options={['hex', 'base64'].map(optionOf)} />
              <Select name="signatureHash" label="Hash" value={stored['signature:hash'] ?? 'sha256'} options={['sha256', 'sha1', 'sha512'].map(optionOf)} />
            </div>
          )}
        </div>
      </Card>
      <Card title="What is written">
        <div class="form-columns">
          <Field name="streams" label="Streams that it may write to" rows={3} isMono value={streams} onInput={setStreams} spellcheck={false} placeholder={'orders\norder-*'} about={<>One a line; <code>*</code> at the end for all that begin so. Without any: every stream that does not begin with <code>$</code>.</>} />
          <Field name="allowedHeaders" label="Headers that are kept" rows={3} isMono value={(listOf(stored, 'allowedHeaders') ?? DEFAULT_HEADERS).join('\n')} spellcheck={false} about="One a line. They stand in the metadata of the event; others are never stored." />
        </div>
      </Card>
      <Card title="Answers">
        <div class="form-columns">
          <div class="stack tight">
            <Toggle name="waitForWrite" label="Answer when the event is durable" isOn={isWaiting} onChange={setWaiting} about="201 then. Else 202 as soon as the call is accepted, and what can't be written afterwards is found among the rejections." />
          </div>
          {isWaiting && <Field name="confirmationTimeout" label="Wait at most" value={stored['confirmationTimeout'] ?? '00:00:30'} isMono about="Then 504; the event may yet be written. hh:mm:ss." />}
          <Select name="skippedStatus" label="Answer to skipped calls" value={stored['skippedStatus'] ?? '400'} options={SKIPPED.map(optionOf)} about="Senders take 400 for a failure: some show it in red, and some try again." />
        </div>
      </Card>
      <Card title="Deliveries that come again">
        <div class="stack">
          <Toggle name="deduplication" label="Write each delivery once" isOn={isDeduplicated} onChange={setDeduplicated} about="Senders repeat what was not answered in time. A delivery is known by the id that its sender gives it." />
          {isDeduplicated && (
            <div class="form-columns">
              <Field name="deduplicationHeader" label="Header with the id" isMono value={stored['deduplication:header'] ?? ''} about="Where the scheme does not say it; without one such calls are not recognised." />
              <Field name="deduplicationMaxAge" label="Remember for" isMono value={stored['deduplication:maxAge'] ?? '72:00:00'} about="hh:mm:ss; at most 30 days." />
              <Field name="deduplicationMaxCount" label="Remember at most" type="number" min={1} max={1_000_000} step={1} value={stored['deduplication:maxCount'] ?? '1000000'} about="Deliveries; the oldest go." />
            </div>
          )}
          <Toggle name="logging" label="Log refused calls" isOn={stored['logging:enabled'] !== 'false'} about="In the log of the node, without values of headers. Rejections are kept either way." />
        </div>
      </Card>
      {isNew ? <Toggle name="start" label="Start it at once" isOn about="Else it is made, and stays stopped." />
        : isRunning && <Toggle name="restart" label="Restart it, so that this counts now" isOn about="Without that it counts from the next start on. Calls that come meanwhile get a 404 or 503, and senders send them again." />}
    </Form>
  );
}

function optionOf(value: string): { readonly value: string; readonly label: string } {
  return { value, label: value };
}

function firstStream(streams: string): string {
  return streams.split('\n').map((each) => each.trim()).find((each) => each !== '' && !each.endsWith('*')) ?? '';
}

function textOf(error: ApiError): string {
  const violations = violationsOf(error);
  return violations.length > 0 ? violations.map(({ field, description }) => (fieldOf(field) === null || violations.length > 1 ? `${field}: ${description}` : description)).join(' ') : error.message;
}

