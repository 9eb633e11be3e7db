import { SkuaError } from '../base/errors.ts';
import { timestampText } from '../base/time.ts';
import { decodeText, encodeText, withoutTrailing } from '../base/text.ts';
import { ALL_STREAM, DEFAULT_SETTINGS } from './api.ts';
import type { GroupFilter, GroupSettings } from './api.ts';
import { isEndText } from './positions.ts';

/**
 * What groups keep in streams, byte for byte as the reference database writes it: indented JSON in which whatever is 0,
 * false or empty is left out. So its directories bring their groups, and go back with ours.
 */

export const CONFIG_STREAM = '$persistentSubscriptionConfig';
export const CONFIG_TYPE = '$PersistentConfig';
/** Older logs. */
export const OLD_CONFIG_TYPE = 'PersistentConfig1';
export const CONFIG_METADATA = '{"$maxCount":2}';
export const CHECKPOINT_TYPE = 'SubscriptionCheckpoint';
/** Types of checkpoints that are read: the reference's next line writes the second. */
export const CHECKPOINT_TYPES: ReadonlySet<string> = new Set([CHECKPOINT_TYPE, '$SubscriptionCheckpoint']);

/** A group as its configuration has it. */
export interface KeptGroup {
  readonly stream: string;
  readonly group: string;
  readonly settings: GroupSettings;
  readonly filter: GroupFilter | null;
  /** As in positions.ts. */
  readonly startPosition: string;
}

/** An instant as the reference writes it with an offset. Milliseconds since 1970, with a fraction or without. */
export function instantText(ms: number): string {
  const whole = Math.floor(ms);
  return `${withoutTrailing(timestampText(whole, Math.floor((ms - whole) * 10_000)), 'Z')}+00:00`;
}

/**
 * The smallest 64-bit number stands for a start that is no event number. No number of JavaScript is written so, hence
 * text.
 */
const NO_NUMBER = '-9223372036854775808';

/** JSON text of a string. The reference also escapes these three, which JSON lets stand. */
function quoted(text: string): string {
  return JSON.stringify(text)
    .replaceAll('\u0085', String.raw`\u0085`)
    .replaceAll('\u2028', String.raw`\u2028`)
    .replaceAll('\u2029', String.raw`\u2029`);
}

type Member = readonly [key: string, raw: string];

function text(key: string, value: string): Member {
  return [key, quoted(value)];
}
function flag(key: string, value: boolean): Member[] {
  return value ? [[key, 'true']] : [];
}
function number(key: string, value: number): Member[] {
  return value === 0 ? [] : [[key, String(value)]];
}

function object(members: readonly Member[], indent: string): string {
  const inner = `${indent}  `;
  return members.length === 0
    ? '{}'
    : `{\n${members.map(([key, raw]) => `${inner}${quoted(key)}: ${raw}`).join(',\n')}\n${indent}}`;
}

function filterMembers(filter: GroupFilter): Member[] {
  const isPrefix = 'prefixes' in filter;
  return [
    text('context', filter.on === 'stream' ? 'streamid' : 'eventtype'),
    text('type', isPrefix ? 'prefix' : 'regex'),
    text('data', isPrefix ? filter.prefixes.join(',') : filter.expression),
    ['isAllStream', 'true'],
  ];
}

function entryMembers({ stream, group, settings: s, filter, startPosition }: KeptGroup): Member[] {
  return [
    text('stream', stream),
    text('group', group),
    ...(filter === null ? [] : [['filter', object(filterMembers(filter), '      ')] as const]),
    ...flag('resolveLinkTos', s.resolveLinks),
    ...flag('extraStatistics', s.extraStatistics),
    ...number('messageTimeout', s.messageTimeoutMs),
    ...(stream === ALL_STREAM ? [['startFrom', NO_NUMBER] as const] : number('startFrom', Number(startPosition))),
    text('startPosition', startPosition),
    ...number('liveBufferSize', s.liveBufferSize),
    ...number('historyBufferSize', s.historyBufferSize),
    ...number('maxRetryCount', s.maxRetryCount),
    ...number('readBatchSize', s.readBatchSize),
    ...number('checkPointAfter', s.checkpointAfterMs),
    ...number('minCheckPointCount', s.minCheckpointCount),
    ...number('maxCheckPointCount', s.maxCheckpointCount),
    ...number('maxSubscriberCount', s.maxSubscriberCount),
    text('namedConsumerStrategy', s.strategy),
  ];
}

/** Data of a configuration event. */
export function encodeConfig(groups: readonly KeptGroup[], updatedMs: number, updatedBy: string): Uint8Array {
  const entries = groups.map((group) => `    ${object(entryMembers(group), '    ')}`).join(',\n');
  return encodeText(
    object(
      [
        text('version', '2'),
        text('updated', instantText(updatedMs)),
        text('updatedBy', updatedBy),
        ['entries', groups.length === 0 ? '[]' : `[\n${entries}\n  ]`],
      ],
      '',
    ),
  );
}

/** The groups of a configuration event. Errors: `persistent_subscription_failed` for what is no configuration. */
export function decodeConfig(data: Uint8Array): KeptGroup[] {
  let value: unknown;
  try {
    value = JSON.parse(decodeText(data));
  } catch {
    throw unreadable('it is not JSON');
  }
  const entries = fieldOf(value, 'entries') ?? [];
  if (typeof value !== 'object' || value === null || !Array.isArray(entries))
    throw unreadable('it has no array of entries');
  return entries.map(decodeEntry);
}

function unreadable(why: string): SkuaError {
  return new SkuaError(
    'persistent_subscription_failed',
    `The last event of ${CONFIG_STREAM} is invalid: ${why}. Append the last valid configuration, and restart the persistent subscriptions.`,
    { stream: CONFIG_STREAM, group: '', reason: why },
  );
}

function fieldOf(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[key] : undefined;
}

function decodeEntry(entry: unknown): KeptGroup {
  const numberOf = (key: string) => {
    const value = fieldOf(entry, key);
    return typeof value === 'number' && Number.isFinite(value) ? Math.trunc(value) : 0;
  };
  const textOf = (key: string) => {
    const value = fieldOf(entry, key);
    return typeof value === 'string' ? value : '';
  };
  const stream = textOf('stream');
  if (stream === '') throw unreadable('an entry names no stream');
  const kept = textOf('startPosition');
  return {
    stream,
    group: textOf('group'),
    filter: decodeFilter(fieldOf(entry, 'filter')),
    startPosition: kept !== '' ? kept : stream === ALL_STREAM ? 'C:0/P:0' : String(numberOf('startFrom')),
    settings: {
      resolveLinks: fieldOf(entry, 'resolveLinkTos') === true,
      extraStatistics: fieldOf(entry, 'extraStatistics') === true,
      messageTimeoutMs: numberOf('messageTimeout'),
      maxRetryCount: numberOf('maxRetryCount'),
      checkpointAfterMs: numberOf('checkPointAfter'),
      minCheckpointCount: numberOf('minCheckPointCount'),
      maxCheckpointCount: numberOf('maxCheckPointCount'),
      maxSubscriberCount: numberOf('maxSubscriberCount'),
      liveBufferSize: numberOf('liveBufferSize'),
      readBatchSize: numberOf('readBatchSize'),
      historyBufferSize: numberOf('historyBufferSize'),
      strategy: textOf('namedConsumerStrategy') || DEFAULT_SETTINGS.strategy,
    },
  };
}

function decodeFilter(value: unknown): GroupFilter | null {
  const data = fieldOf(value, 'data');
  const type = fieldOf(value, 'type');
  if (typeof data !== 'string' || (type !== 'prefix' && type !== 'regex')) return null;
  const on = fieldOf(value, 'context') === 'eventtype' ? 'type' : 'stream';
  return type === 'prefix' ? { on, prefixes: data.split(',') } : { on, expression: data };
}

/** Data of a checkpoint event. */
export function encodeCheckpoint(position: string): Uint8Array {
  return encodeText(quoted(position));
}

/** The text of a checkpoint, null when it is none. */
export function decodeCheckpoint(data: Uint8Array): string | null {
  try {
    const value: unknown = JSON.parse(decodeText(data));
    return typeof value === 'string' ? value : typeof value === 'number' ? String(value) : null;
  } catch {
    return null;
  }
}

/**
 * A group that takes what is written from its creation on has a checkpoint from then on: else what comes before its
 * first one would be left out by a restart. This metadata says that it is no more than that: it counts only as long as
 * the group is kept with that start.
 */
export function encodeInitialMark(startPosition: string): Uint8Array {
  return encodeText(JSON.stringify({ startPosition }));
}

/** The start that a checkpoint is bound to, null for one that was reached. */
export function decodeInitialMark(metadata: Uint8Array): string | null {
  if (metadata.length === 0) return null;
  try {
    const value = fieldOf(JSON.parse(decodeText(metadata)), 'startPosition');
    return typeof value === 'string' && isEndText(value) ? value : null;
  } catch {
    return null;
  }
}

/** Metadata of a parked message's link. `number` is that of the event in the group's source. */
export function encodeParkedMetadata(addedMs: number, reason: string, eventNumber: number): Uint8Array {
  return encodeText(
    object(
      [text('added', instantText(addedMs)), text('reason', reason), ...number('subscriptionEventNumber', eventNumber)],
      '',
    ),
  );
}

const PARKED_ACCESS = '"$acl":{"$r":"$admins","$w":"$admins","$d":"$admins","$mr":"$admins","$mw":"$admins"}';

/** Data of the metadata event that hides parked messages below a number. */
export function encodeParkedTruncation(truncateBefore: number): Uint8Array {
  return encodeText(`{"$tb":${truncateBefore},${PARKED_ACCESS}}`);
}
