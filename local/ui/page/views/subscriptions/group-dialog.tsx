import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { post, put } from '../../api/page-client.ts';
import { goTo, pathTo } from '../../lib/router.ts';
import { Button } from '../../parts/button.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { Field, Form, Select, Toggle } from '../../parts/form.tsx';
import type { Complaints, Values } from '../../parts/form.tsx';
import { toast } from '../../parts/toast.tsx';
import { AllGroup } from './all-group.tsx';
import { ALL, groupPath } from './groups.ts';
import type { GroupConfig } from './groups.ts';

export interface Edited {
  readonly stream: string;
  readonly group: string;
  readonly config: GroupConfig;
}

/** What clients send where their user says nothing; the node takes the same. */
const DEFAULTS: GroupConfig = {
  resolveLinktos: false,
  startPosition: 'start',
  messageTimeoutMilliseconds: 30_000,
  extraStatistics: false,
  maxRetryCount: 10,
  liveBufferSize: 500,
  bufferSize: 500,
  readBatchSize: 20,
  checkPointAfterMilliseconds: 2_000,
  minCheckPointCount: 10,
  maxCheckPointCount: 1_000,
  maxSubscriberCount: 0,
  namedConsumerStrategy: 'RoundRobin',
};
const COUNT_MAX = 2_147_483_647;

const STRATEGIES = [
  { value: 'RoundRobin', label: 'Round robin', about: 'To each consumer in turn.' },
  { value: 'DispatchToSingle', label: 'Dispatch to single', about: 'To one consumer, until it is full.' },
  { value: 'Pinned', label: 'Pinned', about: 'Events of a stream to the same consumer.' },
  {
    value: 'PinnedByCorrelation',
    label: 'Pinned by correlation',
    about: 'Events of a correlation id to the same consumer.',
  },
] as const;

/** In words; those of others as they call it. */
export function strategyText(name: string): string {
  return STRATEGIES.find(({ value }) => value === name)?.label ?? name;
}

type CountName = { [Name in keyof GroupConfig]: GroupConfig[Name] extends number ? Name : never }[keyof GroupConfig];

interface CountField {
  readonly name: CountName;
  readonly label: string;
  readonly about: string;
  readonly min: number;
}

const RETRIES: readonly CountField[] = [
  {
    name: 'messageTimeoutMilliseconds',
    label: 'Message timeout, ms',
    about: 'How long a consumer has to answer before the message is sent again. 0 for no limit.',
    min: 0,
  },
  { name: 'maxRetryCount', label: 'Max retries', about: 'After this many retries a message is parked.', min: 0 },
  { name: 'maxSubscriberCount', label: 'Max consumers', about: '0 for no limit.', min: 0 },
];
const CHECKPOINTS: readonly CountField[] = [
  {
    name: 'checkPointAfterMilliseconds',
    label: 'Checkpoint after, ms',
    about: 'How often to write a checkpoint, if at least the minimum number of messages is processed.',
    min: 0,
  },
  {
    name: 'minCheckPointCount',
    label: 'Min messages per checkpoint',
    about: 'With fewer processed, no checkpoint is written.',
    min: 0,
  },
  {
    name: 'maxCheckPointCount',
    label: 'Max messages per checkpoint',
    about: 'With this many processed, a checkpoint is written at once.',
    min: 0,
  },
];
const BUFFERS: readonly CountField[] = [
  { name: 'bufferSize', label: 'Read buffer', about: 'Messages read ahead; must be more than a page.', min: 1 },
  { name: 'readBatchSize', label: 'Page size', about: 'Messages per read.', min: 1 },
  {
    name: 'liveBufferSize',
    label: 'Live buffer',
    about: 'Newest messages kept in memory while older ones are read.',
    min: 1,
  },
];

interface GroupDialogProps {
  readonly isOpen: boolean;
  readonly edited?: Edited;
  readonly onClose: () => void;
  readonly onDone?: () => void;
}

/** Makes a group, or changes one. */
export function GroupDialog({ isOpen, ...rest }: GroupDialogProps) {
  return (
    <Dialog
      title={rest.edited === undefined ? 'New group' : `Settings of ${rest.edited.group}`}
      isOpen={isOpen}
      onClose={rest.onClose}
      size="large"
    >
      <GroupForm {...rest} />
    </Dialog>
  );
}

function GroupForm({ edited, onClose, onDone }: Omit<GroupDialogProps, 'isOpen'>) {
  const [stream, setStream] = useState('');
  const [group, setGroup] = useState('');
  const config = edited?.config ?? DEFAULTS;
  const isNew = edited === undefined;
  const isOfAll = isNew && stream === ALL;
  const submit = async (values: Values) => {
    const named = edited ?? { stream, group };
    await (isNew ? put : post)(groupPath(named.stream, named.group), bodyOf(values, config));
    onClose();
    onDone?.();
    toast(isNew ? `${group} is created` : `${named.group} has been changed; its consumers reconnect on their own`);
    if (isNew) goTo(pathTo('subscriptions', stream, group));
  };
  return (
    <Form
      validate={complaintsOf}
      onSubmit={submit}
      buttons={(isBusy) => (
        <>
          <Button onClick={onClose}>{isOfAll ? 'Close' : 'Cancel'}</Button>
          {!isOfAll && (
            <Button type="submit" kind="primary" isBusy={isBusy}>
              {isNew ? 'Create group' : 'Save'}
            </Button>
          )}
        </>
      )}
    >
      {isNew && (
        <div class="form-columns">
          <Field
            name="stream"
            label="Stream"
            value={stream}
            onInput={setStream}
            isRequired
            isFocused
            spellcheck={false}
            about={
              <>
                It need not exist yet. With <code>$all</code> (the whole log) this shows how to create such a group.
              </>
            }
          />
          <Field
            name="group"
            label="Name of the group"
            value={group}
            onInput={setGroup}
            isRequired
            spellcheck={false}
            about="Consumers connect to it by this name."
          />
        </div>
      )}
      {isOfAll ? <AllGroup group={group} /> : <GroupFields config={config} isNew={isNew} />}
    </Form>
  );
}

function GroupFields({ config, isNew }: { readonly config: GroupConfig; readonly isNew: boolean }) {
  const [strategy, setStrategy] = useState(config.namedConsumerStrategy);
  return (
    <>
      <div class="form-columns">
        <Field
          name="startPosition"
          label="Start at"
          value={config.startPosition}
          isMono
          spellcheck={false}
          isRequired
          about={
            isNew ? (
              <>
                <code>start</code>, <code>end</code> for events written from now on, or the number of an event.
              </>
            ) : (
              'Applies only until the first checkpoint; use Reset to start a group over.'
            )
          }
        />
        <Select
          name="namedConsumerStrategy"
          label="Strategy"
          value={strategy}
          options={STRATEGIES}
          onChange={setStrategy}
          about={STRATEGIES.find(({ value }) => value === strategy)?.about ?? 'Which consumer gets which message.'}
        />
      </div>
      <Section title="Acknowledgements and retries">
        <Counts fields={RETRIES} config={config} />
      </Section>
      <Section title="Checkpoints">
        <Counts fields={CHECKPOINTS} config={config} />
      </Section>
      <Section title="Buffers">
        <Counts fields={BUFFERS} config={config} />
      </Section>
      <div class="form-columns">
        <Toggle
          name="resolveLinktos"
          label="Resolve links"
          isOn={config.resolveLinktos}
          about="Consumers get the event that a link points to."
        />
        <Toggle
          name="extraStatistics"
          label="Measure latency"
          isOn={config.extraStatistics}
          about="Per consumer, at a small cost."
        />
      </div>
      {!isNew && (
        <p class="muted small">
          Saving drops its consumers, which reconnect on their own; unacknowledged messages are sent again.
        </p>
      )}
    </>
  );
}

function Section({ title, children }: { readonly title: string; readonly children: ComponentChildren }) {
  return (
    <fieldset class="form-section">
      <legend>{title}</legend>
      {children}
    </fieldset>
  );
}

function Counts({ fields, config }: { readonly fields: readonly CountField[]; readonly config: GroupConfig }) {
  return (
    <div class="form-columns">
      {fields.map(({ name, label, about, min }) => (
        <Field
          key={name}
          name={name}
          label={label}
          about={about}
          type="number"
          min={min}
          max={COUNT_MAX}
          step={1}
          isRequired
          value={String(config[name])}
        />
      ))}
    </div>
  );
}

const START = /^(?:start|end|-1|\d{1,19}|C:-?\d{1,19}\/P:-?\d{1,19})$/;

function complaintsOf(values: Values): Complaints {
  const wrong: Record<string, string> = {};
  if (!START.test(values['startPosition'] ?? '')) wrong['startPosition'] = 'Give start, end or the number of an event.';
  if (Number(values['bufferSize']) <= Number(values['readBatchSize']))
    wrong['bufferSize'] = 'It must be larger than the page size.';
  if (Number(values['minCheckPointCount']) > Number(values['maxCheckPointCount']))
    wrong['minCheckPointCount'] = "It can't be more than the maximum.";
  return wrong;
}

/** A start that was not changed is not sent: it would be another start. */
function bodyOf(values: Values, { startPosition }: GroupConfig): Partial<GroupConfig> {
  const counts = Object.fromEntries(
    [...RETRIES, ...CHECKPOINTS, ...BUFFERS].map(({ name }) => [name, Number(values[name])]),
  );
  return {
    ...counts,
    namedConsumerStrategy: values['namedConsumerStrategy']!,
    resolveLinktos: values['resolveLinktos'] === 'true',
    extraStatistics: values['extraStatistics'] === 'true',
    ...(values['startPosition'] !== startPosition && { startPosition: values['startPosition']! }),
  };
}
