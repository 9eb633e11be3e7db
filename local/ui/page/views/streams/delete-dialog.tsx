import { useState } from 'preact/hooks';
import { send } from '../../api/page-client.ts';
import { Button } from '../../parts/button.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { Field, Form } from '../../parts/form.tsx';
import { TypedName } from '../../parts/typed-name.tsx';
import { addressOf } from './name-search.ts';

type Kind = 'soft' | 'hard';

const KINDS: readonly { readonly kind: Kind; readonly title: string; readonly about: string }[] = [
  {
    kind: 'soft',
    title: 'Delete',
    about:
      'Soft delete: its events can no longer be read, and the next scavenge removes them from disk. Until then, a change of its metadata can bring them back. Its access list is lost. Appending starts the stream again at the next event number.',
  },
  {
    kind: 'hard',
    title: 'Hard delete',
    about:
      "The same, but the stream name can never be used again: reads and writes are told that it is deleted. This can't be undone.",
  },
];

/** Both ways of deleting a stream, and how they differ. */
export function DeleteDialog({
  stream,
  isOpen,
  onClose,
  onDone,
}: {
  readonly stream: string;
  readonly isOpen: boolean;
  readonly onClose: () => void;
  readonly onDone: (kind: Kind) => void;
}) {
  return (
    <Dialog title="Delete the stream" isOpen={isOpen} onClose={onClose} size="medium">
      {isOpen && <Asked stream={stream} onClose={onClose} onDone={onDone} />}
    </Dialog>
  );
}

function Asked({
  stream,
  onClose,
  onDone,
}: {
  readonly stream: string;
  readonly onClose: () => void;
  readonly onDone: (kind: Kind) => void;
}) {
  const [kind, setKind] = useState<Kind>('soft');
  return (
    <Form
      validate={({ typed }): Record<string, string> =>
        typed === stream ? {} : { typed: 'This does not match the stream name.' }
      }
      onSubmit={async () => {
        await send('DELETE', addressOf(stream), undefined, {
          headers: kind === 'hard' ? { 'es-harddelete': 'true' } : {},
        });
        onDone(kind);
      }}
      buttons={(isBusy) => (
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="danger" type="submit" isBusy={isBusy}>
            {kind === 'hard' ? 'Hard delete' : 'Delete'}
          </Button>
        </>
      )}
    >
      <fieldset class="stack tight">
        <legend class="hidden-visually">How</legend>
        {KINDS.map((one) => (
          <label key={one.kind} class={`way${one.kind === kind ? ' chosen' : ''}`}>
            <input
              type="radio"
              name="kind"
              value={one.kind}
              checked={one.kind === kind}
              onChange={() => setKind(one.kind)}
            />
            <span>
              <strong>{one.title}</strong>
              <span class="muted small">{one.about}</span>
            </span>
          </label>
        ))}
      </fieldset>
      <TypedName text={stream} />
      <Field name="typed" label="Type the name of the stream to confirm" isRequired isFocused spellcheck={false} />
    </Form>
  );
}
