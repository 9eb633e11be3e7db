import { useState } from 'preact/hooks';
import { post } from '../../api/page-client.ts';
import { Button } from '../../parts/button.tsx';
import { Field, Form, Select, Toggle } from '../../parts/form.tsx';
import type { Complaints, Values } from '../../parts/form.tsx';
import { toast } from '../../parts/toast.tsx';
import type { Run } from './scavenge-view.ts';

const THREADS_MAX = 4;
const THRESHOLD_MAX = 2_147_483_647;

/**
 * What can be said of a scavenge when it is started. Combinations that the node refuses are named before they are sent.
 */
export function StartForm({
  run,
  threshold,
  hasWaiting,
}: {
  readonly run: Run;
  readonly threshold: string | null;
  /** Null: not known. */
  readonly hasWaiting: boolean | null;
}) {
  const [threads, setThreads] = useState('1');
  const [isSyncOnly, setSyncOnly] = useState(false);
  const [isAfresh, setAfresh] = useState(false);
  const isAlone = threads === '1';
  const start = async (values: Values) => {
    await post('/admin/scavenge', undefined, { query: queryOf(values) });
    toast('Scavenge started', 'ok');
    await run.current.refresh();
  };
  return (
    <Form
      validate={complaintsOf}
      onSubmit={start}
      buttons={(isBusy) => (
        <Button type="submit" kind="primary" icon="play" isBusy={isBusy}>
          Start the scavenge
        </Button>
      )}
    >
      <Select
        name="threads"
        label="Threads"
        value={threads}
        onChange={setThreads}
        options={Array.from({ length: THREADS_MAX }, (_, i) => ({
          value: String(i + 1),
          label: i === 0 ? '1, gentle' : i + 1 === THREADS_MAX ? `${i + 1}, fastest` : String(i + 1),
        }))}
        about="Chunks rewritten in parallel. More threads finish sooner, but leave less disk and CPU to reads and writes."
      />
      <Field
        name="threshold"
        label="Threshold"
        type="number"
        value={threshold ?? '0'}
        min={-THRESHOLD_MAX - 1}
        max={THRESHOLD_MAX}
        step={1}
        isRequired
        about={
          <>
            Only chunks of at least this weight are rewritten. 0: all with anything to remove; −1: every chunk.{' '}
            <a href="/ui/scavenge?tab=dry-run">A dry run shows what each threshold reclaims.</a>
          </>
        }
      />
      <Field
        name="throttlePercent"
        label="Throttle in percent"
        type="number"
        value="100"
        min={1}
        max={100}
        step={1}
        isRequired
        isDisabled={!isAlone}
        about={
          isAlone
            ? 'Share of the time spent working: at 50 it pauses for as long as it works; at 100 it never pauses.'
            : 'Only a scavenge with one thread can be throttled.'
        }
      />
      <Toggle
        name="syncOnly"
        label="Use an existing scavenge point"
        isOn={isSyncOnly}
        isDisabled={isAfresh}
        onChange={setSyncOnly}
        about={
          isAfresh
            ? 'Not together with “Start fresh”, which writes a new one.'
            : 'Writes no scavenge point of its own: repeats here what another member of the cluster has done.'
        }
      />
      <Toggle
        name="startAfresh"
        label="Start fresh"
        isOn={isAfresh}
        isDisabled={isSyncOnly}
        onChange={setAfresh}
        about={
          isSyncOnly
            ? 'Not together with “Use an existing scavenge point”.'
            : hasWaiting
              ? 'Abandons the unfinished run and scavenges up to now.'
              : `Abandons an unfinished run, if there is one.${hasWaiting === null ? '' : ' There is none now, so this has no effect.'}`
        }
      />
    </Form>
  );
}

function queryOf({
  threads,
  threshold,
  throttlePercent,
  syncOnly,
  startAfresh,
}: Values): Record<string, string | undefined> {
  return {
    threads,
    threshold,
    throttlePercent,
    syncOnly: syncOnly || undefined,
    startAfresh: startAfresh || undefined,
  };
}

/** As `POST /admin/scavenge` judges. */
function complaintsOf({ threshold, throttlePercent }: Values): Complaints {
  const wrong: Record<string, string> = {};
  if (threshold !== undefined && !/^-?\d+$/.test(threshold.trim()))
    wrong['threshold'] = 'Give a whole number, such as 0 or -1.';
  if (throttlePercent !== undefined && !/^\d+$/.test(throttlePercent.trim()))
    wrong['throttlePercent'] = 'Give a whole number from 1 to 100.';
  return wrong;
}
