import { useState } from 'preact/hooks';
import { post } from '../../api/page-client.ts';
import { Button } from '../../parts/button.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { Field, Form, Select } from '../../parts/form.tsx';
import { toast } from '../../parts/toast.tsx';
import { ALL, groupPath } from './groups.ts';

/** Lets a group begin anew from a place of its stream. */
export function ResetDialog({
  isOpen,
  stream,
  group,
  onClose,
  onDone,
}: {
  readonly isOpen: boolean;
  readonly stream: string;
  readonly group: string;
  readonly onClose: () => void;
  readonly onDone: () => void;
}) {
  const [from, setFrom] = useState('start');
  const isAll = stream === ALL;
  return (
    <Dialog title={`Reset ${group}`} isOpen={isOpen} onClose={onClose} size="small">
      <Form
        onSubmit={async ({ place }) => {
          await post(`${groupPath(stream, group)}/reset`, undefined, {
            query: { from: from === 'place' ? place : from },
          });
          onClose();
          onDone();
          toast(`${group} is reset`);
        }}
        buttons={(isBusy) => (
          <>
            <Button onClick={onClose}>Cancel</Button>
            <Button type="submit" kind="danger" isBusy={isBusy}>
              Reset
            </Button>
          </>
        )}
      >
        <p>
          Its checkpoint is discarded, and its consumers get everything from the new start, including events they
          already had. Parked messages stay parked. Consumers are dropped and reconnect on their own.
        </p>
        <Select
          name="from"
          label="Start at"
          value={from}
          onChange={setFrom}
          options={[
            { value: 'start', label: 'The first event' },
            { value: 'end', label: 'The end: only events written from now on' },
            { value: 'place', label: isAll ? 'A log position' : 'An event' },
          ]}
        />
        {from === 'place' && (
          <Field
            name="place"
            label={isAll ? 'Position' : 'Event number'}
            isRequired
            isMono
            isFocused
            {...(isAll ? { placeholder: 'C:1024/P:1024' } : { type: 'number' as const, min: 0, step: 1 })}
          />
        )}
      </Form>
    </Dialog>
  );
}
