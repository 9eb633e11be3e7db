import { SkuaError } from '../../core/base/errors.ts';
import type { NewEvent, RecordedEvent } from '../event-store/api.ts';
import { isRecord } from '../event-store/values.ts';
import type { Definition, Definitions, EventIssue, EventsOptions, UnknownEvent, Upcast } from './api.ts';
import { checked } from './schema-check.ts';
import type { Checked } from './schema-check.ts';
import type { StandardSchema } from './standard-schema.ts';

/** Events between what is stored and what their types are now. */

/** Where the version of an event's schema stands in its metadata. Events without are of the first. */
const VERSION = '$schemaVersion';
/** Members of the metadata that stores and this put there: a schema may forbid what it does not know. */
const NOT_SHOWN: readonly string[] = [VERSION, '$tags'];
/** Issues that the text of an error shows. */
const SHOWN_ISSUES_MAX = 3;

interface EventType {
  readonly name: string;
  readonly schema: StandardSchema;
  /** The first makes data of version 2 of those of version 1. */
  readonly upcasts: readonly Upcast[];
}

type OrLater<T> = T | Promise<T>;
/** How an event that fails is named: in a sentence, and as data. */
interface Named {
  readonly text: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly whatToDo: string;
}

export interface EventTypes {
  /**
   * An event as it is to be written; `stream` where others go to another one. Throws `event_unknown` and
   * `event_invalid`.
   */
  written(event: NewEvent, index: number, stream?: string): OrLater<NewEvent>;
  /** An event that was read, in the newest form of its type. Throws `event_unknown` and `event_invalid`. */
  read(event: RecordedEvent): OrLater<RecordedEvent>;
  /** These types, and the names that they had before. */
  storedNames(types: readonly string[]): string[];
}

/** Throws a TypeError for what is no definition. */
export function eventTypes(definitions: Definitions, options: EventsOptions = {}): EventTypes {
  const { metadata: metadataSchema, check = 'append', unknown = 'refuse', renamed = {} } = options;
  const types = new Map(Object.entries(definitions).map(([name, each]) => [name, eventType(name, each)]));
  const stored = new Map(types);
  for (const [old, name] of Object.entries(renamed)) {
    const now = types.get(name);
    if (now === undefined || types.has(old))
      throw new TypeError(
        `renamed says that '${old}' is '${name}' now: the first must not be defined, the second must.`,
      );
    stored.set(old, now);
  }

  /** Data and metadata as their schemas make them of what is given. */
  function fitted(
    { schema }: EventType,
    data: unknown,
    metadata: unknown,
    named: () => Named,
  ): OrLater<{ readonly data: unknown; readonly metadata: unknown }> {
    const fitsData = checked(schema, data, 'data');
    const fitsMetadata =
      metadataSchema === undefined ? { value: metadata } : checked(metadataSchema, shownOf(metadata), 'metadata');
    const both = (ofData: Checked, ofMetadata: Checked) => {
      const issues = [...(ofData.issues ?? []), ...(ofMetadata.issues ?? [])];
      if (issues.length > 0) throw invalid(named(), issues);
      return { data: ofData.value, metadata: withOwn(metadata, ofMetadata.value) };
    };
    return fitsData instanceof Promise || fitsMetadata instanceof Promise
      ? Promise.all([fitsData, fitsMetadata]).then(([ofData, ofMetadata]) => both(ofData, ofMetadata))
      : both(fitsData, fitsMetadata);
  }

  return {
    written(event, index, stream) {
      const place = { type: event?.type, index, ...(stream !== undefined && { stream }) };
      const named = (): Named => ({
        text: `Event ${index}${stream === undefined ? '' : ` for '${stream}'`}, ${event.type},`,
        data: place,
        whatToDo: 'Nothing was written.',
      });
      const type = types.get(event?.type);
      if (type === undefined) throw notWritten(place);
      const version = type.upcasts.length + 1;
      return then(fitted(type, event.data, event.metadata, named), ({ data, metadata }) => {
        if (version === 1 && !(isRecord(metadata) && VERSION in metadata)) return { ...event, data, metadata };
        if (metadata !== undefined && !isRecord(metadata))
          throw invalid(named(), [{ path: ['metadata'], message: `must be an object, since ${VERSION} goes into it` }]);
        return { ...event, data, metadata: { ...metadata, [VERSION]: version } };
      });
    },

    read(event) {
      const type = stored.get(event.type);
      if (type === undefined) {
        if (unknown === 'keep') return { ...event, type: '$unknown', storedType: event.type } satisfies UnknownEvent;
        throw unknownType(event);
      }
      if (event.isRedacted) return { ...event, type: type.name };
      const version = versionOf(event);
      const named = (): Named => ({
        text: `Event ${event.version} of '${event.stream}', ${event.type} of version ${version},`,
        data: { type: event.type, stream: event.stream, version: event.version, schemaVersion: version },
        whatToDo: 'Add a version to its type (versions, next) that has room for what was written before.',
      });
      if (version > type.upcasts.length + 1) throw newerVersion(named(), type.upcasts.length + 1);
      let { data } = event;
      try {
        for (const upcast of type.upcasts.slice(version - 1)) data = upcast(data, event);
      } catch (error) {
        const message = `its upcast failed (${error instanceof Error ? error.message : String(error)})`;
        throw invalid(named(), [{ path: ['data'], message }], error);
      }
      if (check !== 'read')
        return data === event.data && type.name === event.type ? event : { ...event, type: type.name, data };
      return then(fitted(type, data, event.metadata, named), (fits) => ({ ...event, type: type.name, ...fits }));
    },

    storedNames: (names) =>
      names.flatMap((name) => [
        name,
        ...Object.entries(renamed)
          .filter(([, now]) => now === name)
          .map(([old]) => old),
      ]),
  };
}

/** Throws a TypeError. */
function eventType(name: string, definition: Definition): EventType {
  if (definition === null || definition === undefined) throw notDefined(name);
  if ('~standard' in definition) return { name, schema: definition, upcasts: [] };
  if ('newest' in definition) return { name, schema: definition.newest, upcasts: definition.upcasts };
  throw notDefined(name);
}

function notDefined(name: string): TypeError {
  return new TypeError(`'${name}' is defined by neither a Standard Schema, nor type<…>(), nor versions(…).`);
}

/** Throws `event_invalid`. */
function versionOf({ type, stream, version, metadata }: RecordedEvent): number {
  const schemaVersion = isRecord(metadata) ? (metadata[VERSION] ?? 1) : 1;
  if (typeof schemaVersion === 'number' && Number.isSafeInteger(schemaVersion) && schemaVersion >= 1)
    return schemaVersion;
  throw invalid(
    {
      text: `Event ${version} of '${stream}', ${type},`,
      data: { type, stream, version },
      whatToDo: 'Its writer has put something else there.',
    },
    [{ path: ['metadata', VERSION], message: 'must be a whole number from 1 on' }],
  );
}

function notWritten(place: { readonly type: string; readonly index: number }): SkuaError {
  return new SkuaError(
    'event_unknown',
    `Event ${place.index} has the type '${place.type}', which is not defined: add it to defineEvents. Nothing was written.`,
    place,
  );
}

function unknownType({ type, stream, version }: RecordedEvent): SkuaError {
  return new SkuaError(
    'event_unknown',
    `Event ${version} of '${stream}' has the type '${type}', which is not defined: add it to defineEvents, name the types that you want, or take \`unknown: 'keep'\`.`,
    { type, stream, version },
  );
}

function newerVersion({ text, data }: Named, newest: number): SkuaError {
  return new SkuaError(
    'event_unknown',
    `${text} is newer than this program, which knows versions up to ${newest}: update it.`,
    data,
  );
}

function invalid({ text, data, whatToDo }: Named, issues: readonly EventIssue[], cause?: unknown): SkuaError {
  const shown = issues.slice(0, SHOWN_ISSUES_MAX).map(({ path, message }) => `${path.join('.')}: ${message}`);
  const more = issues.length > shown.length ? `; and ${issues.length - shown.length} more` : '';
  return new SkuaError(
    'event_invalid',
    `${text} does not fit its schema: ${shown.join('; ')}${more}. ${whatToDo}`,
    { ...data, issues },
    cause,
  );
}

/** Metadata without what is not the writer's. */
function shownOf(metadata: unknown): unknown {
  if (!isRecord(metadata) || !NOT_SHOWN.some((name) => name in metadata)) return metadata;
  const own = Object.entries(metadata).filter(([name]) => !NOT_SHOWN.includes(name));
  // What had nothing else was written without metadata.
  return own.length === 0 ? undefined : Object.fromEntries(own);
}

/** What a schema has made of metadata, with the members of the system that were there. */
function withOwn(before: unknown, after: unknown): unknown {
  if (before === after || !isRecord(before) || (after !== undefined && !isRecord(after))) return after;
  const own = Object.entries(before).filter(([name]) => name.startsWith('$'));
  return own.length === 0 ? after : { ...Object.fromEntries(own), ...after };
}

/** At once, where nothing has to be waited for. */
function then<A, B>(value: OrLater<A>, next: (value: A) => B): OrLater<B> {
  return value instanceof Promise ? value.then(next) : next(value);
}
