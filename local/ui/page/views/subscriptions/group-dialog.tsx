import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { post, put } from '../../api/client.ts';
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
  resolveLinktos: false, startPosition: 'start', messageTimeoutMilliseconds: 30_000, extraStatistics: false, maxRetryCount: 10, liveBufferSize: 500, bufferSize: 500, readBatchSize: 20,
  checkPointAfterMilliseconds: 2_000, minCheckPointCount: 10, maxCheckPointCount: 1_000, maxSubscriberCount: 0, namedConsumerStrategy: 'RoundRobin',
};
const COUNT_MAX = 2_147_483_647;

export const STRATEGIES = [
  { value: 'RoundRobin', label: 'Round robin – to each consumer in turn' },
  { value: 'DispatchToSingle', label: 'Dispatch to single – to one, until it is full' },
  { value: 'Pinned', label: 'Pinned – events of a stream to the same consumer' },
  { value: 'PinnedByCorrelation', label: 'Pinned by correlation – events of a correlation id to the same consumer' },
] as const;

type CountName = { [Name in keyof GroupConfig]: GroupConfig[Name] extends number ? Name : never }[keyof GroupConfig];

interface CountField {
  readonly name: CountName;
  readonly label: string;
  readonly about: string;
  readonly min: number;
}

const RETRIES: readonly CountField[] = [
  { name: 'messageTimeoutMilliseconds', label: 'Message timeout, ms', about: 'How long a consumer has to answer before the message is sent again. 0 for ever.', min: 0 },
  { name: 'maxRetryCount', label: 'Retries', about: 'A message that would be sent more often again is parked.', min: 0 },
  { name: 'maxSubscriberCount', label: 'Most consumers', about: '0 for any number.', min: 0 },
];
const CHECKPOINTS: readonly CountField[] = [
  { name: 'checkPointAfterMilliseconds', label: 'Checkpoint after, ms', about: 'After so long, if at least the least number of messages is done.', min: 0 },
  { name: 'minCheckPointCount', label: 'Least messages of a checkpoint', about: 'Fewer that are done wait for more.', min: 0 },
  { name: 'maxCheckPointCount', label: 'Most messages of a checkpoint', about: 'With so many that are done one is written at once.', min: 0 },
];
const BUFFERS: readonly CountField[] = [
  { name: 'bufferSize', label: 'Read buffer', about: 'Messages read ahead; more than a page.', min: 1 },
  { name: 'readBatchSize', label: 'Page', about: 'Messages that are read at once.', min: 1 },
  { name: 'liveBufferSize', label: 'Live buffer', about: 'Newest messages that are held while older ones are read.', min: 1 },
];

interface GroupDialogProps {
  readonly isOpen: boolean;
  readonly edited?: Edited;
  readonly onClose: () => void;
  readonly onDone?: () => void;
}

/** Makes a group, or changes one. */
export function GroupDialog({ isOpen, ...rest }: GroupDialogProps) {
  return <Dialog title={rest.edited === undefined ? 'New group' : `Settings of ${rest.edited.group}`} isOpen={isOpen} onClose={rest.onClose} size="large"><GroupForm {...rest} /></Dialog>;
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
    toast(isNew ? `${group} is there now` : `${named.group} has been changed; its consumers come back by themselves`);
    if (isNew) goTo(pathTo('subscriptions', stream, group));
  };
  return (
    <Form validate={complaintsOf} onSubmit={submit} buttons={(isBusy) => <><Button onClick={onClose}>{isOfAll ? 'Close' : 'Cancel'}</Button>{!isOfAll && <Button type="submit" kind="primary" isBusy={isBusy}>{isNew ? 'Make group' : 'Save'}</Button>}</>}>
      {isNew && (
        <div class="form-columns">
          <Field name="stream" label="Stream" value={stream} onInput={setStream} isRequired isFocused spellcheck={false} about={<>Need not be there yet. With <code>$all</code>, for the whole log, this shows how such a group is made.</>} />
          <Field name="group" label="Name of the group" value={group} onInput={setGroup} isRequired spellcheck={false} about="Consumers connect to it by this name." />
        </div>
      )}
      {isOfAll ? <AllGroup group={group} /> : <GroupFields config={config} isNew={isNew} />}
    </Form>
  );
}

function GroupFields({ config, isNew }: { readonly config: GroupConfig; readonly isNew: boolean }) {
  return (
    <>
      <div class="form-columns">
        <Field
          name="startPosition" label={isNew ? 'Begin at' : 'Start'} value={config.startPosition} isMono spellcheck={false} isRequired
          about={isNew ? <><code>start</code>, <code>end</code> for what is written from now on, or the number of an event.</> : 'Counts until the first checkpoint only; Reset lets a group begin anew.'}
        />
        <Select name="namedConsumerStrategy" label="Strategy" value={config.namedConsumerStrategy} options={STRATEGIES} about="Which consumer gets which message." />
      </div>
      <Section title="Answers and retries"><Counts fields={RETRIES} config={config} /></Section>
      <Section title="Checkpoints"><Counts fields={CHECKPOINTS} config={config} /></Section>
      <Section title="Buffers"><Counts fields={BUFFERS} config={config} /></Section>
      <div class="form-columns">
        <Toggle name="resolveLinktos" label="Resolve links" isOn={config.resolveLinktos} about="Consumers get the event that a link names." />
        <Toggle name="extraStatistics" label="Measure how long answers take" isOn={config.extraStatistics} about="Of each consumer, at a small cost." />
      </div>
      {!isNew && <p class="muted small">Its consumers are dropped when this is saved, and come back by themselves; what they had not acknowledged is sent again.</p>}
    </>
  );
}

function Section({ title, children }: { readonly title: string; readonly children: ComponentChildren }) {
  return <fieldset class="form-section"><legend>{title}</legend>{children}</fieldset>;
}

function Counts({ fields, config }: { readonly fields: readonly CountField[]; readonly config: GroupConfig }) {
  return <div class="form-columns">{fields.map(({ name, label, about, min }) => <Field key={name} name={name} label={label} about={about} type="number" min={min} max={COUNT_MAX} step={1} isRequired value={String(config[name])} />)}</div>;
}

const START = /^(?:start|end|-1|\d{1,19}|C:-?\d{1,19}\/P:-?\d{1,19})$/;

function complaintsOf(values: Values): Complaints {
  const wrong: Record<string, string> = {};
  if (!START.test(values['startPosition'] ?? '')) wrong['startPosition'] = 'Give start, end or the number of an event.';
  if (Number(values['bufferSize']) <= Number(values['readBatchSize'])) wrong['bufferSize'] = 'It has to be larger than a page.';
  if (Number(values['minCheckPointCount']) > Number(values['maxCheckPointCount'])) wrong['minCheckPointCount'] = 'It can\'t be more than the most.';
  return wrong;
}

/** A start that was not changed is not sent: it would be another start. */
function bodyOf(values: Values, { startPosition }: GroupConfig): Partial<GroupConfig> {
  const counts = Object.fromEntries([...RETRIES, ...CHECKPOINTS, ...BUFFERS].map(({ name }) => [name, Number(values[name])]));
  return {
    ...counts, namedConsumerStrategy: values['namedConsumerStrategy']!, resolveLinktos: values['resolveLinktos'] === 'true', extraStatistics: values['extraStatistics'] === 'true',
    ...(values['startPosition'] !== startPosition && { startPosition: values['startPosition']! }),
  };
}
