import {
  arrayOf,
  BINARY,
  BOOLEAN,
  COUNT,
  failing,
  INTEGER,
  json,
  media,
  object,
  ok,
  problems,
  query,
  ref,
  TEXT,
  UUID,
} from './schema-parts.ts';
import type { OperationDoc, Schema } from '../http/route.ts';

/**
 * The OpenAPI document of what members of a cluster ask of each other. Other programs have no use for it: it changes
 * with the version.
 */

const UUID_OR_NULL: Schema = { type: ['string', 'null'], format: 'uuid' };
const MILLISECONDS: Schema = { type: 'number', minimum: 0 };

export const CLUSTER_SCHEMAS: Readonly<Record<string, Schema>> = {
  MemberAddress: object({ address: TEXT, port: { type: 'integer', minimum: 1, maximum: 65_535 } }),
  MemberEpoch: object({
    number: COUNT,
    position: { ...COUNT, description: 'Of its record, in the log.' },
    id: UUID,
    leaderInstanceId: UUID,
  }),
  MemberGossip: object({
    logId: UUID,
    sender: ref('MemberAddress'),
    entries: { ...arrayOf(ref('MemberEntry')), description: "The sender's own is the first." },
  }),
  MemberEntry: {
    ...object({
      node: ref('MemberAddress'),
      instanceId: UUID,
      sentMs: { ...MILLISECONDS, description: 'By the clock of the member that it is about.' },
      state: TEXT,
      priority: INTEGER,
      isReadOnlyReplica: BOOLEAN,
      version: TEXT,
      applied: { ...INTEGER, description: 'Number of the last commit in its copy.' },
      lastCommitPosition: INTEGER,
      writerCheckpoint: INTEGER,
      chaserCheckpoint: INTEGER,
      epoch: { anyOf: [ref('MemberEpoch'), { type: 'null' }] },
      hears: { ...UUID_OR_NULL, description: 'Instance of the leader that it follows.' },
      bucketSilentMs: MILLISECONDS,
      scavengeId: { type: ['string', 'null'] },
    }),
    additionalProperties: true,
  },
};

const LOG_ID = '1d0f7c3e-1d3e-4c55-8a5a-53e2c1b6a0f4';
const INSTANCE = '6f1c8f4e-2b0d-4f3a-9c57-0d4c1a2b3e4f';
const NODE = { address: 'node1.example.test', port: 2113 };
const EPOCH = { number: 3, position: 4_000, id: '5d2c9f1e-0d6f-4f7a-b1a8-7a3c1d2e4f50', leaderInstanceId: INSTANCE };
const ENTRY = {
  node: NODE,
  instanceId: INSTANCE,
  sentMs: 1_932_894_930_123,
  state: 'Leader',
  priority: 0,
  isReadOnlyReplica: false,
  version: '0.1.0',
  applied: 17,
  lastCommitPosition: 5_000,
  writerCheckpoint: 5_200,
  chaserCheckpoint: 5_200,
  epoch: EPOCH,
  hears: INSTANCE,
  bucketSilentMs: 0,
  scavengeId: null,
};
const OTHER_LOG = {
  409: failing(
    'The member has a replica of another log (`other_log`), or the address belongs to another member (`address_in_use`).',
  ),
};

export const CLUSTER_DOCS = {
  gossip: {
    summary: 'Exchange cluster membership',
    description: 'Sends what the sender knows and returns what the member knows.',
    body: { required: true, content: json(ref('MemberGossip'), { logId: LOG_ID, sender: NODE, entries: [ENTRY] }) },
    responses: {
      200: ok('What the member knows.', json(ref('MemberGossip'))),
      ...problems(400, 413, 415),
      ...OTHER_LOG,
    },
  },
  commits: {
    summary: 'Commits of the leader',
    description: 'One after the other, as in the log. The answer is held while there is none.',
    parameters: [
      { ...query('log', 'Id of the log.', UUID, LOG_ID), required: true },
      { ...query('from', 'Number of the first one wanted.', COUNT, 1), required: true },
      { ...query('instance', 'Instance of the member that asks.', UUID, INSTANCE), required: true },
      { ...query('waitMs', 'Milliseconds to hold the answer at most.', COUNT, 0), required: true },
    ],
    responses: {
      200: ok('Commits from that one on.', media(BINARY, 'application/octet-stream')),
      204: ok('None came in time.'),
      410: ok('The member does not have them at hand, or is not the leader: the log has them.'),
      ...problems(400),
      ...OTHER_LOG,
    },
  },
  append: {
    summary: 'Writes forwarded by a member',
    description:
      'For its clients, and for itself: a length, a JSON text with the writes in their order, and data and metadata of all events. Accepted only by the leader, in the epoch in which it was sent; each write is decided separately.',
    body: { required: true, content: media(BINARY, 'application/octet-stream') },
    responses: {
      200: ok(
        'The outcome of each write.',
        json(object({ logEnd: INTEGER, outcomes: arrayOf({}) }), {
          logEnd: 5_200,
          outcomes: [{ result: { firstEventNumber: 3, lastEventNumber: 3, position: 5_000, isRepeat: false } }],
        }),
      ),
      ...problems(400, 413, 415),
    },
  },
  lead: {
    summary: 'Become the leader',
    body: {
      required: true,
      content: json(object({ logId: UUID, epochNumber: { ...INTEGER, description: 'The epoch to succeed.' } }), {
        logId: LOG_ID,
        epochNumber: 3,
      }),
    },
    responses: {
      200: ok('The epoch in which the member is now the leader.', json(ref('MemberEpoch'))),
      ...problems(400, 413, 415),
      409: failing(
        'Another epoch was committed meanwhile (`epoch_lost`), or the member has a replica of another log (`other_log`).',
      ),
    },
  },
} as const satisfies Readonly<Record<string, OperationDoc>>;
