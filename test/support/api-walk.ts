import { expect } from 'vitest';
import { resolveRef, schemaErrors } from './json-schema.ts';

/** Compares the answers of a running app with what its OpenAPI document says. */

export interface MediaObject {
  readonly schema?: Record<string, unknown>;
  readonly example?: unknown;
}
export interface ParameterObject {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required?: boolean;
  readonly description: string;
  readonly schema: Record<string, unknown>;
  readonly example: string | number | boolean | readonly string[];
}
export interface ResponseObject {
  readonly description: string;
  readonly headers?: Record<string, { readonly required?: boolean; readonly schema: Record<string, unknown> }>;
  readonly content?: Record<string, MediaObject>;
}
export interface OperationObject {
  readonly operationId: string;
  readonly security: readonly object[];
  readonly parameters: readonly (ParameterObject | { readonly $ref: string })[];
  readonly requestBody?: { readonly required: boolean; readonly content: Record<string, MediaObject> };
  readonly responses: Record<string, ResponseObject | { readonly $ref: string }>;
}

export function resolved<T extends object>(value: T | { readonly $ref: string }, document: unknown): T {
  return '$ref' in value ? (resolveRef(value.$ref, document) as T) : value;
}

/** A request, as parameters of an operation. */
export interface Asked {
  readonly method: string;
  /** The path as it stands in the document. */
  readonly template: string;
  readonly path: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array<ArrayBuffer>;
}

export function requestOf({ method, template, path, query = {}, headers = {}, body }: Asked, origin: string): Request {
  const filled = template.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(path[name]!));
  const search = new URLSearchParams(query).toString();
  return new Request(`${origin}${filled}${search === '' ? '' : `?${search}`}`, {
    method: method.toUpperCase(),
    headers: { ...headers },
    body: body ?? null,
  });
}

/** Fails the test unless the response is one that the operation is documented to give. */
export async function expectDocumented(
  response: Response,
  operation: OperationObject,
  document: object,
  what: string,
): Promise<void> {
  const documented = operation.responses[String(response.status)];
  if (documented === undefined) expect.fail(`${what}: ${response.status} is not documented. ${await response.text()}`);
  const { headers = {}, content } = resolved(documented, document);
  for (const [name, header] of Object.entries(headers)) {
    const value = response.headers.get(name);
    if (value === null) expect(header.required, `${what}: ${response.status} lacks the header ${name}`).not.toBe(true);
    else
      expect(
        schemaErrors(typeOf(header.schema) === 'string' ? value : Number(value), header.schema, document, name),
        what,
      ).toEqual([]);
  }
  const type = response.headers.get('content-type')?.split(';')[0] ?? '';
  if (type === 'text/event-stream') {
    await response.body!.cancel();
    expect(Object.keys(content ?? {}), what).toContain(type);
    return;
  }
  const text = await response.text();
  if (content === undefined) {
    expect(text, `${what}: ${response.status} has a body`).toBe('');
    return;
  }
  expect(Object.keys(content), `${what}: ${response.status}`).toContain(type);
  const { schema } = content[type]!;
  if (/[/+]json$/.test(type))
    expect(
      schemaErrors(JSON.parse(text), schema ?? {}, document),
      `${what}: ${response.status} ${text.slice(0, 300)}`,
    ).toEqual([]);
  if (type === 'application/x-ndjson') {
    for (const line of text.split('\n').filter((each) => each !== ''))
      expect(schemaErrors(JSON.parse(line), schema!['contentSchema'] as never, document), what).toEqual([]);
  }
}

function typeOf(schema: Record<string, unknown>): unknown {
  return schema['type'];
}
