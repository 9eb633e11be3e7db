import type { EventIssue } from './api.ts';
import type { SchemaIssue, SchemaResult, StandardSchema } from './standard-schema.ts';

/** Issues of one value that are kept: a long list may have one for each of its items. */
const ISSUES_MAX = 100;

/** What a schema has made of a value, or what is wrong with it. */
export interface Checked {
  readonly value?: unknown;
  readonly issues?: readonly EventIssue[];
}

/** Asks a schema, which may answer later. */
export function checked(
  schema: StandardSchema,
  value: unknown,
  where: 'data' | 'metadata',
): Checked | Promise<Checked> {
  const result = schema['~standard'].validate(value);
  return result instanceof Promise ? result.then((later) => told(later, where)) : told(result, where);
}

function told(result: SchemaResult<unknown>, where: string): Checked {
  if (result.issues === undefined) return { value: result.value };
  const issues = result.issues.slice(0, ISSUES_MAX).map((issue) => eventIssue(issue, where));
  // A library that says that it failed, and not why.
  return { issues: issues.length > 0 ? issues : [{ message: 'does not fit', path: [where] }] };
}

function eventIssue({ message, path = [] }: SchemaIssue, where: string): EventIssue {
  const keys = path.map((segment) => (typeof segment === 'object' ? segment.key : segment));
  return { message, path: [where, ...keys.map((key) => (typeof key === 'symbol' ? String(key) : key))] };
}
