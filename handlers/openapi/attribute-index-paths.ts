import { arrayOf, BOOLEAN, COUNT, documentOf, json, ok, oneOf, problems, ref, TEXT } from './schema-parts.ts';
import type { OperationDoc, Schema } from '../http/route.ts';
import type {
  AttributeIndexDocument,
  AttributeIndexesDocument,
  AttributeSettingBody,
  AttributeSettingDocument,
} from '../documents/attribute-indexes.ts';

/** The OpenAPI document of attribute indexes. */

export const ATTRIBUTE_INDEX_SCHEMAS: Readonly<Record<string, Schema>> = {
  AttributeSettingWanted: documentOf<AttributeSettingBody>({
    'names?': { ...BOOLEAN, description: 'Categories and event types.' },
    'correlations?': { ...BOOLEAN, description: '`$correlationId` of event metadata.' },
    'tags?': { ...BOOLEAN, description: '`$tags` of event metadata.' },
  }),
  AttributeIndexes: documentOf<AttributeIndexesDocument>({
    setting: documentOf<AttributeSettingDocument>({ names: BOOLEAN, correlations: BOOLEAN, tags: BOOLEAN }),
    indexes: arrayOf(
      documentOf<AttributeIndexDocument>({
        name: oneOf('names', 'correlations', 'tags'),
        state: {
          ...oneOf('off', 'building', 'live'),
          description: '`building`: reads scan what it does not cover yet.',
        },
        coveredTo: { ...COUNT, description: 'Position in the log below which all events have been indexed.' },
        logEnd: COUNT,
        entries: COUNT,
        tableBytes: COUNT,
        'error?': { ...TEXT, description: 'Why building it does not get on; it is tried again.' },
      }),
    ),
  }),
};

const STATUS = ok('The setting of the log, and the indexes of this node.', json(ref('AttributeIndexes')));

export const ATTRIBUTE_INDEX_DOCS = {
  read: {
    summary: 'Show the attribute indexes',
    description: 'They make reads by category, event type, correlation and tag quick.',
    responses: { 200: STATUS, ...problems(400, 406) },
  },
  change: {
    summary: 'Switch attribute indexes on or off',
    description:
      'The setting is stored in the log (stream `$attribute-indexes`) and applies to all members of a cluster and to functions. An index that is switched on is built in the background; one that is switched off is removed from the disk. Those not named stay as they are.',
    body: { required: true, content: json(ref('AttributeSettingWanted'), { tags: true }) },
    responses: { 200: STATUS, ...problems(400, 406, 413, 415) },
  },
} as const satisfies Readonly<Record<string, OperationDoc>>;
