import { useState } from 'preact/hooks';
import { send } from '../../api/page-client.ts';
import { parseJson } from '../../lib/json.ts';
import { newUuid } from '../../lib/uuid.ts';
import { Button } from '../../parts/button.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { Field, Form, Select } from '../../parts/form.tsx';
import type { Complaints, Values } from '../../parts/form.tsx';
import { Name } from '../../parts/name.tsx';
import { addressOf, isReachable } from './name-search.ts';

/** One event by hand. Without a stream its name is asked for. */
export function AppendDialog({
  stream,
  isOpen,
  onClose,
  onDone,
}: {
  readonly stream?: string;
  readonly isOpen: boolean;
  readonly onClose: () => void;
  readonly onDone: (number: number, stream: string) => void;
}) {
  return (
    <Dialog title="Append an event" isOpen={isOpen} onClose={onClose} size="medium">
      {isOpen && <Asked onClose={onClose} onDone={onDone} {...(stream !== undefined && { stream })} />}
    </Dialog>
  );
}

const VERSIONS = [
  { value: 'any', label: 'Any: append regardless of version' },
  { value: 'none', label: 'The stream must not exist yet' },
  { value: 'exists', label: 'The stream must exist' },
  { value: 'exact', label: 'The last event must be number…' },
] as const;

function Asked({
  stream,
  onClose,
  onDone,
}: {
  readonly stream?: string;
  readonly onClose: () => void;
  readonly onDone: (number: number, stream: string) => void;
}) {
  const [form, setForm] = useState<'json' | 'text'>('json');
  const [version, setVersion] = useState<string>('any');
  // The same id if it is tried again: it is appended once, whatever becomes of the first answer.
  const [id] = useState(newUuid);
  return (
    <Form
      validate={(values) => complaintsAbout(values, form, stream)}
      onSubmit={async (values) => {
        const target = stream ?? values['stream']!;
        onDone(await append(target, id, form, values), target);
      }}
      buttons={(isBusy) => (
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" type="submit" isBusy={isBusy}>
            Append
          </Button>
        </>
      )}
    >
      {stream === undefined ? (
        <Field
          name="stream"
          label="Stream"
          about="It is created with its first event."
          isRequired
          isFocused
          spellcheck={false}
        />
      ) : (
        <p class="muted break">
          To{' '}
          <strong>
            <Name text={stream} />
          </strong>
          , as event <code class="small">{id}</code>
        </p>
      )}
      <div class="field-pair">
        <Field
          name="type"
          label="Event type"
          placeholder="such as order-placed"
          isRequired
          isFocused={stream !== undefined}
          spellcheck={false}
        />
        <Select
          name="form"
          label="Data format"
          value={form}
          onChange={(value) => setForm(value as 'json' | 'text')}
          options={[
            { value: 'json', label: 'JSON' },
            { value: 'text', label: 'Text' },
          ]}
        />
      </div>
      <Field
        name="data"
        label="Data"
        rows={7}
        isMono
        spellcheck={false}
        {...(form === 'json' && { placeholder: '{"order": 17}' })}
      />
      <Field
        name="metadata"
        label="Metadata"
        about='A JSON object, such as {"$correlationId": "…"}.'
        rows={2}
        isMono
        spellcheck={false}
      />
      <div class="field-pair">
        <Select name="version" label="Expected version" value={version} onChange={setVersion} options={VERSIONS} />
        {version === 'exact' && (
          <Field name="number" label="Last event number" type="number" min={0} step={1} isRequired />
        )}
      </div>
    </Form>
  );
}

function complaintsAbout(values: Values, form: 'json' | 'text', stream: string | undefined): Complaints {
  const { data = '', metadata = '' } = values;
  const complaints: Record<string, string> = {};
  const named = values['stream'] ?? '';
  if (stream === undefined && named !== '' && !isReachable(named))
    complaints['stream'] = "This stream name can't be used over HTTP.";
  const isObject = /^\s*[[{]/.test(data);
  if (form === 'json' && data.trim() !== '' && parseJson(data) === undefined)
    complaints['data'] = 'This is not valid JSON. Choose “Text” to store it as is.';
  else if (form === 'json' && metadata.trim() !== '' && !isObject)
    complaints['data'] = 'With metadata, JSON data must be an object or an array.';
  if (metadata.trim() !== '' && (parseJson(metadata) === undefined || !/^\s*\{/.test(metadata)))
    complaints['metadata'] = 'This is not a JSON object.';
  return complaints;
}

/** Resolves to the number of the event. */
async function append(
  stream: string,
  id: string,
  form: 'json' | 'text',
  { type = '', data = '', metadata = '', version, number }: Values,
): Promise<number> {
  const expected = { any: '-2', none: '-1', exists: '-4', exact: number ?? '' }[
    version as 'any' | 'none' | 'exists' | 'exact'
  ];
  const headers = { 'es-expectedversion': expected };
  const hasMetadata = metadata.trim() !== '';
  // Alone, data are stored byte for byte; metadata go with the form for several events only.
  const response = hasMetadata
    ? await send(
        'POST',
        addressOf(stream),
        `[{"eventId":${JSON.stringify(id)},"eventType":${JSON.stringify(type)},"data":${form === 'json' ? data : JSON.stringify(data)},"metadata":${metadata}}]`,
        { headers: { ...headers, 'content-type': 'application/vnd.eventstore.events+json' } },
      )
    : await send('POST', addressOf(stream), data, {
        headers: {
          ...headers,
          'es-eventid': id,
          'es-eventtype': headerOf(type),
          'content-type': form === 'json' ? 'application/json' : 'application/octet-stream',
        },
      });
  return Number(/\/(\d+)$/.exec(response.headers.get('location') ?? '')?.[1] ?? Number.NaN);
}

/** Headers carry bytes: those of UTF-8, a character each. */
function headerOf(text: string): string {
  return Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join('');
}
