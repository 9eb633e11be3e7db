import type { NodeOutcome } from '../../core/auto-scavenge/api.ts';
import {
  arrayOf,
  BOOLEAN,
  documentOf,
  failing,
  json,
  object,
  ok,
  oneOf,
  problems,
  query,
  ref,
  TIME,
  UUID,
} from './schema-parts.ts';
import type { OperationDoc, Schema } from '../http/route.ts';
import type { EnabledDocument, ScheduleDocument, TimesDocument } from '../documents/scavenging.ts';

/** The OpenAPI document of auto-scavenge. */

const EMPTY: Schema = { type: 'object', additionalProperties: false };
const orNull = (schema: Schema): Schema => ({ anyOf: [{ type: 'null' }, schema] });
const NODE = documentOf<NodeOutcome>({
  node: { type: 'string', description: 'Its address, `host:port`.' },
  state: oneOf('waiting', 'running', 'completed'),
  scavengeId: { ...orNull(UUID), description: 'The scavenge on that node; null before it has started.' },
  result: orNull(oneOf('Success', 'Stopped', 'Errored')),
});

export const AUTO_SCAVENGE_SCHEMAS: Readonly<Record<string, Schema>> = {
  AutoScavengeEnabled: documentOf<EnabledDocument>({
    enabled: BOOLEAN,
    'reason?': { type: 'string', description: 'Why it is off.' },
  }),
  AutoScavengeStatus: documentOf<ScheduleDocument>({
    state: oneOf('NotConfigured', 'Waiting', 'InProgress', 'Pausing', 'Paused'),
    schedule: { type: ['string', 'null'], description: 'As configured, in single spaces; null when never configured.' },
    timeUntilNextCycle: {
      type: ['string', 'null'],
      pattern: '^(\\d+\\.)?\\d\\d:\\d\\d:\\d\\d(\\.\\d{7})?$',
      description: '`[days.]hh:mm:ss[.fraction]`; zero while a cycle is in progress; null without a schedule.',
    },
    cycle: orNull(
      documentOf<NonNullable<ScheduleDocument['cycle']>>(
        { clusterScavengeId: UUID, startedAt: TIME, nodes: arrayOf(NODE) },
        'The current cycle.',
      ),
    ),
    lastCycle: orNull(
      documentOf<NonNullable<ScheduleDocument['lastCycle']>>(
        { clusterScavengeId: UUID, completedAt: TIME, nodes: arrayOf(NODE) },
        'The last completed cycle.',
      ),
    ),
    'waiting?': {
      ...ref('OlderScavengePoint'),
      description:
        'Point of an unfinished scavenge of the node that was asked: the next cycle resumes it, up to this point, and leaves the rest to the cycle after it.',
    },
  }),
  AutoScavengeTimes: documentOf<TimesDocument>({
    schedule: { type: 'string', description: 'In single spaces.' },
    zone: { type: 'string', description: 'Name of the time zone.' },
    times: { ...arrayOf(TIME), description: 'Fewer than requested if it does not occur that often.' },
  }),
  AutoScavengeSchedule: object({
    schedule: {
      type: 'string',
      description: 'Minute, hour, day of month, month, day of week: numbers, names, `*`, `,`, `-`, `/`.',
    },
  }),
};

const OFF = { 503: failing("Auto-scavenge is off; `hint` says why. Or the node can't do this now.") };
const COMMON = { ...problems(400, 406), ...OFF };
const DONE = ok('Done.', json(EMPTY));
const LEADER = 'Answered by the leader of the cluster, whichever member you ask.';

export const AUTO_SCAVENGE_DOCS = {
  enabled: {
    summary: 'Whether scavenges can be scheduled',
    description: 'On the member that is asked.',
    responses: {
      200: ok('Whether it is on, and if not, why.', json(ref('AutoScavengeEnabled'))),
      ...problems(400, 406),
    },
  },
  status: {
    summary: 'The schedule and the current cycle',
    description: LEADER,
    responses: { 200: ok('The status.', json(ref('AutoScavengeStatus'))), ...COMMON },
  },
  times: {
    summary: 'Next times of a schedule',
    description: 'For any expression, not only the configured one; nothing is saved.',
    parameters: [
      {
        ...query('schedule', 'Minute, hour, day of month, month, day of week.', { type: 'string' }, '30 2 * * 0'),
        required: true,
      },
      query('zone', 'Name of a time zone; the default is that of the node.', { type: 'string' }, 'Europe/Oslo'),
      query('count', 'How many times.', { type: 'integer', minimum: 1, maximum: 20 }, 5),
    ],
    responses: { 200: ok('The times.', json(ref('AutoScavengeTimes'))), ...problems(400, 406) },
  },
  pause: {
    summary: 'Start no more scavenges until resumed',
    description: `The scavenge that is running on a node is stopped; the answer waits up to a second for its end. ${LEADER}`,
    responses: {
      200: ok('Nothing is running any more.', json(EMPTY)),
      202: ok('A scavenge is still being stopped.'),
      ...COMMON,
    },
  },
  resume: {
    summary: 'Resume after a pause',
    description: `A cycle continues with the remaining nodes. ${LEADER}`,
    responses: { 200: DONE, ...COMMON },
  },
  configure: {
    summary: 'Set the schedule',
    description: `The next cycle starts at the next scheduled time, never immediately. ${LEADER}`,
    body: { required: true, content: json(ref('AutoScavengeSchedule'), { schedule: '30 2 * * 0' }) },
    responses: { 200: DONE, ...COMMON, ...problems(413, 415) },
  },
} as const satisfies Readonly<Record<string, OperationDoc>>;
