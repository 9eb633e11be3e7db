import { useState } from 'preact/hooks';
import { post } from '../../api/page-client.ts';
import { bytesText, numberText } from '../../lib/format.ts';
import { ExactNumber, parseJson } from '../../lib/json.ts';
import { Button } from '../../parts/button.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { Notice } from '../../parts/empty-state.tsx';
import { Field, Form, Toggle } from '../../parts/form.tsx';
import type { Values } from '../../parts/form.tsx';
import { Name } from '../../parts/name.tsx';
import type { RedactBody, RedactionDocument } from '../../../../../handlers/documents/redaction.ts';
import type { LineDocument } from '../../../../../handlers/documents/streams.ts';

interface RedactProps {
  readonly onClose: () => void;
  /** With what remains, in words. */
  readonly onDone: (remains: string) => void;
}

/** Takes the content of one event away: first what that would be, then for ever. Open while there is an event. */
export function RedactDialog({ line, ...props }: RedactProps & { readonly line: LineDocument | null }) {
  return (
    <Dialog title="Redact the event" isOpen={line !== null} onClose={props.onClose} size="medium">
      {line !== null && <Asked line={line} {...props} />}
    </Dialog>
  );
}

/** Names of metadata that stay unless they are named. */
export function keptNames(metadata: string | null): readonly string[] {
  const value = metadata === null ? undefined : parseJson(metadata);
  if (typeof value !== 'object' || value === null || Array.isArray(value) || value instanceof ExactNumber) return [];
  return Object.keys(value).filter((name) => name.startsWith('$'));
}

function Asked({ line, onClose, onDone }: RedactProps & { readonly line: LineDocument }) {
  const { streamId, eventNumber, metaData } = line;
  const names = keptNames(metaData);
  const [reason, setReason] = useState('');
  const [dropped, setDropped] = useState<readonly string[]>([]);
  const [found, setFound] = useState<RedactionDocument | null>(null);
  const ask = (text: string, isPreview: boolean) =>
    post<RedactionDocument>(
      '/admin/redact',
      { stream: streamId, events: [eventNumber], reason: text, metadata: dropped } satisfies RedactBody,
      { query: { preview: isPreview } },
    );
  const submit = async ({ reason: typed = '' }: Values) => {
    if (found !== null) return onDone((await ask(reason, false)).remains);
    setReason(typed);
    return setFound(await ask(typed, true));
  };
  return (
    <Form
      onSubmit={submit}
      buttons={(isBusy) => (
        <>
          <Button onClick={found === null ? onClose : () => setFound(null)}>
            {found === null ? 'Cancel' : 'Back'}
          </Button>
          <Button kind={found === null ? 'primary' : 'danger'} type="submit" isBusy={isBusy}>
            {found === null ? 'Preview' : 'Redact'}
          </Button>
        </>
      )}
    >
      {found === null ? (
        <>
          <p>
            The event stays, with its number, id and type, but reads as empty everywhere. The next scavenge removes its
            content from the files. This can't be undone.
          </p>
          <Field
            name="reason"
            label="Reason"
            about="It is kept: write a case number, and nothing of what is to be removed."
            value={reason}
            isRequired
            isFocused
          />
          {names.map((name) => (
            <Toggle
              key={name}
              name={`drop ${name}`}
              label={`Remove the metadata ${name}, too`}
              isOn={dropped.includes(name)}
              onChange={(isOn) => setDropped(isOn ? [...dropped, name] : dropped.filter((other) => other !== name))}
            />
          ))}
        </>
      ) : (
        <Preview found={found} kept={names.filter((name) => !dropped.includes(name))} />
      )}
    </Form>
  );
}

function Preview({
  found: { stream, events },
  kept,
}: {
  readonly found: RedactionDocument;
  readonly kept: readonly string[];
}) {
  return (
    <>
      {events.map(({ number, type, dataBytes, metadataBytes }) => (
        <p key={number} class="break">
          Event {numberText(number)} of <Name text={stream} />, <Name text={type} />: {bytesText(dataBytes)} of data and{' '}
          {bytesText(metadataBytes)} of metadata
          {kept.length === 0 ? '' : `, of which ${kept.join(', ')} ${kept.length === 1 ? 'stays' : 'stay'}`}.
        </p>
      ))}
      <Notice tone="warn">
        Backups that were made before the next scavenge keep the content until they are pruned.
      </Notice>
    </>
  );
}
