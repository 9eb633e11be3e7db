import { Ajv2020 } from 'ajv/dist/2020.js';
import type { ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';

/**
 * Checks JSON values against schemas of an OpenAPI document (dialect 2020-12). Strict: a keyword, format or reference
 * that means nothing throws, so that no rule is passed over in silence.
 */

interface Schemas {
  readonly ajv: Ajv2020;
  readonly compiled: WeakMap<object, ValidateFunction>;
}
interface Document {
  readonly components: { readonly schemas: object };
}

const documents = new WeakMap<object, Schemas>();

/** With references as they are where the schemas of the document stand alone. */
function alone(schema: object): object {
  return JSON.parse(
    JSON.stringify(schema).replaceAll('"$ref":"#/components/schemas/', '"$ref":"document#/$defs/'),
  ) as object;
}

function schemasOf(document: object): Schemas {
  const ajv = new Ajv2020({ strict: true, strictRequired: true, allowUnionTypes: true, allErrors: true });
  addFormats.default(ajv);
  // Of OpenAPI, and for readers only.
  ajv.addKeyword('example').addSchema({ $defs: alone((document as Document).components.schemas) }, 'document');
  return { ajv, compiled: new WeakMap() };
}

/** What is wrong with a value: one line each, empty when nothing is. */
export function schemaErrors(value: unknown, schema: object, document: object, at = '$'): string[] {
  const { ajv, compiled } = documents.get(document) ?? schemasOf(document);
  documents.set(document, { ajv, compiled });
  const validate = compiled.get(schema) ?? ajv.compile(alone(schema));
  compiled.set(schema, validate);
  return validate(value)
    ? []
    : validate.errors!.map(
        ({ instancePath, message, params }) => `${at}${instancePath}: ${message} ${JSON.stringify(params)}`,
      );
}

/** What a local reference points to. */
export function resolveRef(reference: string, document: unknown): unknown {
  let target = document;
  for (const part of reference.replace(/^#\//, '').split('/'))
    target = (target as Record<string, unknown> | undefined)?.[
      decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~')
    ];
  if (!reference.startsWith('#/') || target === undefined) throw new Error(`Nothing is at ${reference}.`);
  return target;
}
