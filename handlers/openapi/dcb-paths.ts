import {
  arrayOf,
  BOOLEAN,
  COUNT,
  documentOf,
  failing,
  json,
  ok,
  PARAMETERS,
  problems,
  query,
  ref,
  TEXT,
  UUID,
} from './schema-parts.ts';
import type { OperationDoc, Schema } from '../http/route.ts';
import type { DcbAppendBody, DcbAppended, DcbEvent, DcbNewEvent, DcbQuery, DcbQueryItem } from '../documents/dcb.ts';

/** The OpenAPI document of appends on a condition. */

const TAGS: Schema = { ...arrayOf(TEXT), description: 'At most 64 of 256 bytes; kept as `$tags` in the metadata.' };

export const DCB_SCHEMAS: Readonly<Record<string, Schema>> = {
  DcbQuery: documentOf<DcbQuery>(
    {
      'items?': {
        ...arrayOf(documentOf<DcbQueryItem>({ 'types?': arrayOf(TEXT), 'tags?': arrayOf(TEXT) })),
        maxItems: 32,
        description: 'An event matches one of these: it has any of the types and all of the tags.',
      },
    },
    'Without items all events match.',
  ),
  DcbNewEvent: documentOf<DcbNewEvent>({
    type: TEXT,
    'tags?': TAGS,
    'data?': { description: 'A text is kept as it is, any other value as its JSON.' },
    'metadata?': { type: 'object' },
    'id?': UUID,
    'stream?': { ...TEXT, default: 'dcb', description: 'It does not begin with `$`.' },
  }),
  DcbCondition: {
    type: 'object',
    properties: {
      failIfEventsMatch: ref('DcbQuery'),
      after: { type: 'integer', minimum: -1, description: 'Only events behind this position count.' },
    },
    required: ['failIfEventsMatch'],
    additionalProperties: false,
  },
  DcbAppend: documentOf<DcbAppendBody>({
    events: { anyOf: [ref('DcbNewEvent'), arrayOf(ref('DcbNewEvent'))] },
    'condition?': ref('DcbCondition'),
  }),
  DcbAppended: documentOf<DcbAppended>({
    durationInMicroseconds: COUNT,
    appendConditionFailed: BOOLEAN,
    'position?': { ...COUNT, description: 'Of the last event that was written.' },
    'isRepeat?': BOOLEAN,
    'matched?': documentOf<NonNullable<DcbAppended['matched']>>(
      { stream: TEXT, number: COUNT, position: COUNT },
      'The oldest event that matches.',
    ),
  }),
  DcbEvent: documentOf<DcbEvent>({
    type: TEXT,
    tags: arrayOf(TEXT),
    data: TEXT,
    position: COUNT,
    stream: TEXT,
    number: COUNT,
    id: UUID,
    'isRedacted?': { const: true, description: 'Its content was taken away: `data` is empty. It counts nevertheless.' },
  }),
};

export const DCB_DOCS = {
  append: {
    summary: 'Append events on a condition',
    description:
      'The events are written unless one that matches has come behind `after`; a condition that fails is no error, and the answer says so. It asks for the right to read `$all`. The body has at most 8 MiB.',
    parameters: [PARAMETERS.requireLeader],
    body: { required: true, content: json(ref('DcbAppend'), { events: [{ type: 'Noted', tags: ['a'], data: '{}' }] }) },
    responses: {
      200: ok('What became of it.', json(ref('DcbAppended'))),
      ...problems(400, 406, 413, 415),
      409: failing('`after` is beyond the end of the log, or an index that the condition needs is switched off.'),
      422: failing('The search for events that match looked at too many.'),
    },
  },
  read: {
    summary: 'Read the events that a decision stands on',
    description:
      'An answer has at most 65 536 events and about as many bytes as a page. One that ends before `limit` and before the log says in `Link` where to read on; a backward read that would is refused with 400 `page_too_large`: give a smaller `limit`.',
    parameters: [
      query('query', 'JSON such as `{"items": [{"types": ["Noted"], "tags": ["a"]}]}`.', TEXT, '{"items":[]}'),
      query('options', 'JSON: `from` (a position), `limit`, `backwards`.', TEXT, '{"limit":10}'),
      PARAMETERS.requireLeader,
    ],
    responses: {
      200: {
        ...ok('The events in order.', json(arrayOf(ref('DcbEvent')))),
        headers: {
          'ES-Position': {
            description: 'How far it looked: what `after` of a condition takes.',
            required: true,
            schema: { type: 'integer', minimum: -1 },
          },
          Link: {
            description:
              'Where a forward read goes on, as `rel="next"`. Without it there is nothing more of what was asked for.',
            schema: TEXT,
          },
        },
      },
      ...problems(400, 406),
    },
  },
} as const satisfies Readonly<Record<string, OperationDoc>>;
