/**
 * Checks JSON values against schemas of the dialect 2020-12, as far as our OpenAPI document uses it. A keyword it does
 * not know is an error, so that no rule is passed over in silence.
 */

type Schema = Readonly<Record<string, unknown>> | boolean;

/** Keywords that say something to readers only. */
const NOTES = new Set(['description', 'title', 'example', 'examples', 'default', 'contentMediaType', 'contentSchema']);

/** What is wrong with a value: one line each, empty when nothing is. */
export function schemaErrors(value: unknown, schema: Schema, document: unknown, at = '$'): string[] {
  if (typeof schema === 'boolean') return schema ? [] : [`${at}: nothing is allowed here`];
  const errors: string[] = [];
  for (const keyword of Object.keys(schema)) {
    if (NOTES.has(keyword) || keyword === 'required' || keyword === 'additionalProperties') continue;
    const rule = RULES[keyword];
    if (rule === undefined) throw new Error(`The schema keyword '${keyword}' is not known to the checker.`);
    errors.push(...rule(value, schema[keyword] as never, { document, at, schema }));
  }
  return [...errors, ...objectErrors(value, schema, document, at)];
}

interface Place { readonly document: unknown; readonly at: string; readonly schema: Readonly<Record<string, unknown>> }
type Rule = (value: unknown, argument: never, place: Place) => string[];

const isText = (value: unknown): value is string => typeof value === 'string';
const isNumber = (value: unknown): value is number => typeof value === 'number';
const failIf = (isWrong: boolean, at: string, what: string): string[] => (isWrong ? [`${at}: ${what}`] : []);

const FORMATS: Readonly<Record<string, (text: string) => boolean>> = {
  uuid: (text) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text),
  'date-time': (text) => /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/.test(text),
  uri: (text) => URL.canParse(text),
};

const RULES: Readonly<Record<string, Rule>> = {
  $ref: (value, argument: string, { document, at }) => schemaErrors(value, resolveRef(argument, document) as Schema, document, at),
  type: (value, argument: string | string[], { at }) => failIf(![argument].flat().some((type) => isOfType(value, type)), at, `${JSON.stringify(value)} is not of type ${[argument].flat().join(' or ')}`),
  enum: (value, argument: unknown[], { at }) => failIf(!argument.includes(value), at, `${JSON.stringify(value)} is none of ${JSON.stringify(argument)}`),
  const: (value, argument: unknown, { at }) => failIf(value !== argument, at, `${JSON.stringify(value)} is not ${JSON.stringify(argument)}`),
  pattern: (value, argument: string, { at }) => failIf(isText(value) && !new RegExp(argument, 'u').test(value), at, `${JSON.stringify(value)} does not match ${argument}`),
  format: (value, argument: string, { at }) => {
    const isOfFormat = FORMATS[argument];
    if (isOfFormat === undefined) throw new Error(`The format '${argument}' is not known to the checker.`);
    return failIf(isText(value) && !isOfFormat(value), at, `${JSON.stringify(value)} is no ${argument}`);
  },
  minimum: (value, argument: number, { at }) => failIf(isNumber(value) && value < argument, at, `${value as number} is below ${argument}`),
  maximum: (value, argument: number, { at }) => failIf(isNumber(value) && value > argument, at, `${value as number} is above ${argument}`),
  minLength: (value, argument: number, { at }) => failIf(isText(value) && value.length < argument, at, `is shorter than ${argument}`),
  minItems: (value, argument: number, { at }) => failIf(Array.isArray(value) && value.length < argument, at, `has fewer than ${argument} items`),
  maxProperties: (value, argument: number, { at }) => failIf(isObject(value) && Object.keys(value).length > argument, at, `has more than ${argument} members`),
  items: (value, argument: Schema, { document, at }) => (Array.isArray(value) ? value.flatMap((item, i) => schemaErrors(item, argument, document, `${at}[${i}]`)) : []),
  properties: (value, argument: Record<string, Schema>, { document, at }) =>
    (isObject(value) ? Object.entries(argument).flatMap(([name, schema]) => (name in value ? schemaErrors(value[name], schema, document, `${at}.${name}`) : [])) : []),
  anyOf: (value, argument: Schema[], { document, at }) => {
    const all = argument.map((schema) => schemaErrors(value, schema, document, at));
    return all.some((errors) => errors.length === 0) ? [] : [`${at}: fits none of the alternatives: ${all.flat().join('; ')}`];
  },
};

function objectErrors(value: unknown, schema: Readonly<Record<string, unknown>>, document: unknown, at: string): string[] {
  if (!isObject(value)) return [];
  const missing = ((schema['required'] ?? []) as string[]).filter((name) => !(name in value)).map((name) => `${at}: lacks ${name}`);
  const more = schema['additionalProperties'] as Schema | undefined;
  if (more === undefined) return missing;
  const known = new Set(Object.keys((schema['properties'] ?? {}) as object));
  return [...missing, ...Object.entries(value).filter(([name]) => !known.has(name)).flatMap(([name, each]) => schemaErrors(each, more, document, `${at}.${name}`))];
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isOfType(value: unknown, type: string): boolean {
  switch (type) {
    case 'null': return value === null;
    case 'array': return Array.isArray(value);
    case 'object': return isObject(value);
    case 'integer': return Number.isInteger(value);
    case 'number': case 'string': case 'boolean': return typeof value === type;
    default: throw new Error(`The type '${type}' is not known to the checker.`);
  }
}

/** What a local reference points to. */
export function resolveRef(reference: string, document: unknown): unknown {
  let target = document;
  for (const part of reference.replace(/^#\//, '').split('/')) target = (target as Record<string, unknown> | undefined)?.[decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~')];
  if (!reference.startsWith('#/') || target === undefined) throw new Error(`Nothing is at ${reference}.`);
  return target;
}
