import { Validator } from '@seriousme/openapi-schema-validator';
import { resolved } from './api-walk.ts';
import type { OperationObject, ParameterObject } from './api-walk.ts';

interface Document {
  readonly tags: readonly { readonly name: string }[];
  readonly paths: Readonly<
    Record<string, Readonly<Record<string, OperationObject & { readonly tags: readonly string[] }>>>
  >;
  readonly components: Readonly<Record<string, object>>;
}

/**
 * What is wrong with a document by the schema of OpenAPI, by references that lead nowhere, and by what its text says
 * beside the schema: one line each, empty when nothing is.
 */
export async function openApiErrors(document: object): Promise<string[]> {
  const { errors = [] } = await new Validator().validate(
    JSON.parse(JSON.stringify(document)) as Record<string, unknown>,
  );
  if (errors.length > 0) return [errors].flat().map((error) => JSON.stringify(error));
  return textErrors(document as Document);
}

function textErrors(document: Document): string[] {
  const found: string[] = [];
  const expect = (isRight: boolean, what: string) => {
    if (!isRight) found.push(what);
  };
  const operations = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ at: `${method} ${path}`, path, operation })),
  );
  const ids = operations.map(({ operation }) => operation.operationId);
  const used = new Set(operations.flatMap(({ operation }) => operation.tags));
  for (const { at, path, operation } of operations) {
    const parameters = operation.parameters.map((parameter) => resolved<ParameterObject>(parameter, document));
    const inPath = parameters.filter((parameter) => parameter.in === 'path').map(({ name }) => name);
    expect(
      inPath.toSorted().join() ===
        [...path.matchAll(/\{(\w+)\}/g)]
          .map(([, name]) => name)
          .toSorted()
          .join(),
      `${at} has the path parameters ${inPath.join()}`,
    );
    expect(
      new Set(parameters.map((parameter) => `${parameter.in} ${parameter.name.toLowerCase()}`)).size ===
        parameters.length,
      `${at} has a parameter twice`,
    );
    expect(
      parameters.every(
        (parameter) => parameter.in !== 'header' || !/^(?:accept|content-type|authorization)$/i.test(parameter.name),
      ),
      `${at} has a header parameter that is ignored`,
    );
    expect(
      ids.filter((id) => id === operation.operationId).length === 1,
      `${at} has the operationId ${operation.operationId} of another`,
    );
    expect(
      operation.tags.every((tag) => document.tags.some(({ name }) => name === tag)),
      `${at} has a tag that is not declared`,
    );
    expect(
      operation.security.flatMap(Object.keys).every((name) => name in document.components['securitySchemes']!),
      `${at} has a security scheme that is not declared`,
    );
    expect(operation.requestBody === undefined || !/^(?:get|head|delete)/.test(at), `${at} has a body`);
    expect(
      Object.keys(operation.responses).some((status) => /^[23]/.test(status)),
      `${at} never succeeds`,
    );
  }
  expect(
    new Set(Object.keys(document.paths).map((path) => path.replace(/\{\w+\}/g, '{}'))).size ===
      Object.keys(document.paths).length,
    'Two paths differ in the names of their variables only',
  );
  for (const { name } of document.tags) expect(used.has(name), `${name} is used by nobody`);
  const text = JSON.stringify(document);
  for (const [kind, entries] of Object.entries(document.components)) {
    if (kind !== 'securitySchemes')
      for (const name of Object.keys(entries))
        expect(text.includes(`"#/components/${kind}/${name}"`), `${kind} ${name} is used by nobody`);
  }
  return found;
}
