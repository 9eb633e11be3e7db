import { useEffect, useState } from 'preact/hooks';
import { get, post } from '../../api/page-client.ts';
import { errorOf } from '../../api/problem-text.ts';
import type { ApiError } from '../../api/problem-text.ts';
import { dayTimeText } from '../../lib/format.ts';
import { Button } from '../../parts/button.tsx';
import { Field, Form } from '../../parts/form.tsx';
import { toast } from '../../parts/toast.tsx';
import { TimesList } from './times.tsx';
import type { TimesDocument } from '../../../../../handlers/documents/scavenging.ts';

const PRESETS = [
  { label: `Sundays at ${dayTimeText(2, 30)}`, schedule: '30 2 * * 0' },
  { label: `Every night at ${dayTimeText(3, 0)}`, schedule: '0 3 * * *' },
  { label: `First of the month at ${dayTimeText(4, 0)}`, schedule: '0 4 1 * *' },
  { label: `Monday to Friday at ${dayTimeText(23, 0)}`, schedule: '0 23 * * 1-5' },
] as const;
/** The node is asked when the user stops typing for this long, not with each letter. */
const PAUSE_MS = 300;

/** A schedule as it is typed, with what the node makes of it. */
export function ScheduleForm({
  schedule,
  onSaved,
  onCancel,
}: {
  readonly schedule: string | null;
  readonly onSaved: () => Promise<void>;
  readonly onCancel?: () => void;
}) {
  const [text, setText] = useState(schedule ?? PRESETS[0].schedule);
  const [next, setNext] = useState<TimesDocument | ApiError | null>(null);
  useEffect(() => {
    const ending = new AbortController();
    const timer = setTimeout(() => {
      get<TimesDocument>('/auto-scavenge/times', { query: { schedule: text, count: 5 }, signal: ending.signal }).then(
        setNext,
        (thrown: unknown) => {
          if (!ending.signal.aborted) setNext(errorOf(thrown));
        },
      );
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      ending.abort();
    };
  }, [text]);
  const wrong = next instanceof Error ? next : null;
  return (
    <Form
      onSubmit={async () => {
        await post('/auto-scavenge/configure', { schedule: text });
        toast('Schedule saved', 'ok');
        await onSaved();
      }}
      errorField={({ code }) => (code === 'invalid_schedule' ? 'schedule' : null)}
      errorText={(error) => sentencesOf(error)}
      buttons={(isBusy) => (
        <>
          {onCancel !== undefined && <Button onClick={onCancel}>Cancel</Button>}
          <Button type="submit" kind="primary" isBusy={isBusy} isDisabled={text.trim() === ''}>
            Save the schedule
          </Button>
        </>
      )}
    >
      <div class="presets" role="group" aria-label="Common schedules">
        {PRESETS.map((preset) => (
          <Button
            key={preset.schedule}
            isSmall
            isPressed={text.trim() === preset.schedule}
            onClick={() => setText(preset.schedule)}
          >
            {preset.label}
          </Button>
        ))}
      </div>
      <Field
        name="schedule"
        label="Schedule"
        value={text}
        onInput={setText}
        isRequired
        isMono
        spellcheck={false}
        about={
          <>
            Five fields: minute, hour, day of the month, month, day of the week.{' '}
            <span class="nowrap">
              <code>*</code> is any,
            </span>{' '}
            <span class="nowrap">
              <code>1,15</code> a list,
            </span>{' '}
            <span class="nowrap">
              <code>1-5</code> a range,
            </span>{' '}
            <span class="nowrap">
              <code>*/6</code> every sixth.
            </span>
          </>
        }
      />
      <div class="schedule-next" aria-live="polite">
        {wrong !== null && <p class="field-wrong">{sentencesOf(wrong)}</p>}
        {wrong === null && next !== null && <TimesList next={next as TimesDocument} />}
      </div>
    </Form>
  );
}

function sentencesOf({ message, hint }: ApiError): string {
  return hint === null ? message : hint;
}
