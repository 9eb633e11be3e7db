import { guidFromUuidBytes, guidToText } from '../../../core/base/guid.ts';
import type { Ids } from '../../../core/ports/ids.ts';
import { EVENT_BYTES_MAX } from '../../../core/streams/api.ts';
import type { NewEvent } from '../../../core/streams/api.ts';
import { encodeText } from '../../../core/base/text.ts';
import type { Value } from '../messages/google.ts';
import type { BadRequestFieldViolation } from '../messages/rpc.ts';
import { SchemaFormat } from '../messages/streams-v2.ts';
import type { AppendRecord, SchemaInfo } from '../messages/streams-v2.ts';
import { recordTooLarge } from './rich-error.ts';

/** What each format is called in the metadata of an event. */
const FORMATS: ReadonlyMap<number, string> = new Map([
  [SchemaFormat.SCHEMA_FORMAT_JSON, 'Json'],
  [SchemaFormat.SCHEMA_FORMAT_PROTOBUF, 'Protobuf'],
  [SchemaFormat.SCHEMA_FORMAT_AVRO, 'Avro'],
  [SchemaFormat.SCHEMA_FORMAT_BYTES, 'Bytes'],
]);
const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const NO_ID = '00000000-0000-0000-0000-000000000000';
/** Violations that the answer to one request names. */
const VIOLATIONS_MAX = 100;

/** Records as they are looked at, one after the other, with all that is wrong with them. */
export class Records {
  readonly violations: BadRequestFieldViolation[] = [];
  /** The client named all ids, so that the same request can be known again. */
  hasAllIds = true;
  readonly #ids: Ids;

  constructor(ids: Ids) {
    this.#ids = ids;
  }

  violate(field: string, description: string): void {
    if (this.violations.length < VIOLATIONS_MAX) this.violations.push({ field, description });
  }

  /**
   * The event that a record is; `at` names it. Null where something is wrong with it. Throws for one that is too large.
   */
  event(record: AppendRecord, stream: string, at: string): NewEvent | null {
    const { schema, properties, data } = record;
    const before = this.violations.length;
    const id = this.#idOf(record.recordId ?? '', at);
    const format = this.#formatOf(schema, at);
    if (schema !== undefined) this.#checkProperties(properties, format, schema, at);
    const metadata = schema === undefined ? null : metadataOf(properties, format, schema);
    if (metadata === null && schema !== undefined)
      this.violate(`${at}.properties`, 'a number is not finite, which JSON has no form for: leave it out');
    if (this.violations.length > before || metadata === null) return null;
    const size = data.length + metadata.length;
    if (size > EVENT_BYTES_MAX) throw recordTooLarge(stream, id, size, EVENT_BYTES_MAX);
    return { id, type: schema!.name, isJson: schema!.format === SchemaFormat.SCHEMA_FORMAT_JSON, data, metadata };
  }

  /** Any key may begin with $, as those of tracing and of correlations do. */
  #checkProperties(properties: ReadonlyMap<string, Value>, format: string, schema: SchemaInfo, at: string): void {
    for (const [key, value] of properties) {
      if (key === '') this.violate(`${at}.properties`, 'a key is empty: name the property');
      const written = ofSchema(key, format, schema);
      if (written !== undefined && value.stringValue !== written)
        this.violate(
          `${at}.properties`,
          `'${key}' is written by the server, and differs from what it takes from the schema: leave it out, or give the same`,
        );
    }
  }

  #idOf(recordId: string, at: string): string {
    if (recordId === '') {
      this.hasAllIds = false;
      return guidToText(guidFromUuidBytes(this.#ids.uuidBytes()), 0);
    }
    if (!ID.test(recordId) || recordId === NO_ID)
      this.violate(`${at}.record_id`, 'this is no UUID: give one with dashes that is not all zeros, or none');
    return recordId;
  }

  #formatOf(schema: SchemaInfo | undefined, at: string): string {
    if (schema === undefined) {
      this.violate(`${at}.schema`, 'there is none: give its name and its format');
      return '';
    }
    if (schema.name === '') this.violate(`${at}.schema.name`, 'there is none: it is the type of the event');
    const format = FORMATS.get(schema.format);
    if (format === undefined) this.violate(`${at}.schema.format`, 'there is none: give JSON, PROTOBUF, AVRO or BYTES');
    return format ?? '';
  }
}

/** What the system says of a schema under this key; undefined where the key is the client's. */
function ofSchema(key: string, format: string, schema: SchemaInfo): string | undefined {
  switch (key) {
    case '$schema.format':
      return format;
    case '$schema.name':
      return schema.name;
    case '$schema.id':
      return schema.id;
    default:
      return undefined;
  }
}

/**
 * Custom metadata as readers of the first generation see them: the properties, then what the system says of the schema.
 * Null where a number has no form in JSON.
 */
function metadataOf(properties: ReadonlyMap<string, Value>, format: string, schema: SchemaInfo): Uint8Array | null {
  const members: string[] = [];
  for (const [key, value] of properties) {
    if (ofSchema(key, format, schema) !== undefined) continue;
    const json = jsonOf(value);
    if (json === null) return null;
    members.push(`${JSON.stringify(key)}:${json}`);
  }
  members.push(`"$schema.format":"${format}"`, `"$schema.name":${JSON.stringify(schema.name)}`);
  if (schema.id !== '') members.push(`"$schema.id":${JSON.stringify(schema.id)}`);
  return encodeText(`{${members.join(',')}}`);
}

/** The text of a value. No objects are made of names that come from outside. */
function jsonOf({ numberValue, stringValue, boolValue, structValue, listValue }: Value): string | null {
  if (stringValue !== undefined) return JSON.stringify(stringValue);
  if (numberValue !== undefined) return Number.isFinite(numberValue) ? JSON.stringify(numberValue) : null;
  if (boolValue !== undefined) return boolValue ? 'true' : 'false';
  if (listValue !== undefined) return joined(listValue.values.map(jsonOf), '[', ']');
  if (structValue === undefined) return 'null';
  return joined(
    [...structValue.fields].map(([key, value]) => {
      const json = jsonOf(value);
      return json === null ? null : `${JSON.stringify(key)}:${json}`;
    }),
    '{',
    '}',
  );
}

function joined(parts: readonly (string | null)[], open: string, close: string): string | null {
  return parts.includes(null) ? null : open + parts.join(',') + close;
}
