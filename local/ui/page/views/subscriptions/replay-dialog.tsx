import { useState } from 'preact/hooks';
import { post } from '../../api/page-client.ts';
import { countText } from '../../lib/format.ts';
import { Button } from '../../parts/button.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { Field, Form, Select } from '../../parts/form.tsx';
import { toast } from '../../parts/toast.tsx';
import { groupPath } from './groups.ts';

export interface ReplayProps {
  readonly isOpen: boolean;
  readonly stream: string;
  readonly group: string;
  readonly count: number;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

/** Sends parked messages again: all, or those below a number. */
export function ReplayDialog({ isOpen, stream, group, count, onClose, onDone }: ReplayProps) {
  const [which, setWhich] = useState('all');
  return (
    <Dialog title="Replay parked messages" isOpen={isOpen} onClose={onClose} size="small">
      <Form
        onSubmit={async ({ stopAt }) => {
          await post(`${groupPath(stream, group)}/replayParked`, undefined, {
            query: { stopAt: which === 'all' ? null : stopAt },
          });
          onClose();
          onDone();
          toast('Parked messages are being replayed');
        }}
        buttons={(isBusy) => (
          <>
            <Button onClick={onClose}>Cancel</Button>
            <Button type="submit" kind="primary" isBusy={isBusy}>
              Replay
            </Button>
          </>
        )}
      >
        <p>They are sent to the consumers of the group again, as if new. Messages that fail again are parked again.</p>
        <Select
          name="which"
          label="Which"
          value={which}
          onChange={setWhich}
          options={[
            { value: 'all', label: `All (${countText(count, 'message')})` },
            { value: 'some', label: 'Those below a number' },
          ]}
        />
        {which === 'some' && (
          <Field
            name="stopAt"
            label="Below number"
            type="number"
            min={1}
            step={1}
            isRequired
            about="Numbers as in the list of parked messages, oldest first. The message with this number stays parked."
          />
        )}
      </Form>
    </Dialog>
  );
}
