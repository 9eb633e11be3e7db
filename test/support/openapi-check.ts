import { resolveRef } from './json-schema.ts';

/** Rules of the OpenAPI 3.1 specification for the objects that our document consists of. */

type Obj = Record<string, unknown>;

const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace'];
const COMPONENT_NAME = /^[a-zA-Z0-9._-]+$/;
const MEDIA_TYPE = /^[a-z]+\/[a-z0-9.+-]+$/;
const STATUS = /^[1-5]\d\d$/;

/** The members an object must and may have. */
const SHAPES: Readonly<Record<string, { readonly must: readonly string[]; readonly may: readonly string[] }>> = {
  document: { must: ['openapi', 'info', 'paths'], may: ['servers', 'tags', 'components', 'security', 'externalDocs', 'webhooks', 'jsonSchemaDialect'] },
  info: { must: ['title', 'version'], may: ['summary', 'description', 'termsOfService', 'contact', 'license'] },
  license: { must: ['name'], may: ['identifier', 'url'] },
  server: { must: ['url'], may: ['description', 'variables'] },
  tag: { must: ['name'], may: ['description', 'externalDocs'] },
  components: { must: [], may: ['schemas', 'responses', 'parameters', 'examples', 'requestBodies', 'headers', 'securitySchemes', 'links', 'callbacks', 'pathItems'] },
  operation: { must: ['responses'], may: ['tags', 'summary', 'description', 'externalDocs', 'operationId', 'parameters', 'requestBody', 'callbacks', 'deprecated', 'security', 'servers'] },
  parameter: { must: ['name', 'in', 'schema'], may: ['description', 'required', 'deprecated', 'allowEmptyValue', 'style', 'explode', 'allowReserved', 'example', 'examples'] },
  requestBody: { must: ['content'], may: ['description', 'required'] },
  response: { must: ['description'], may: ['headers', 'content', 'links'] },
  header: { must: ['schema'], may: ['description', 'required', 'deprecated', 'example', 'examples'] },
  media: { must: [], may: ['schema', 'example', 'examples', 'encoding'] },
  httpScheme: { must: ['type', 'scheme'], may: ['description', 'bearerFormat'] },
};

/** What is wrong with a document: one line each, empty when nothing is. */
export function openApiErrors(document: Obj): string[] {
  const check = new Check(document);
  check.document();
  return check.errors;
}

class Check {
  readonly errors: string[] = [];
  readonly #doc: Obj;
  readonly #ids = new Set<string>();
  readonly #refs = new Set<string>();

  constructor(doc: Obj) {
    this.#doc = doc;
  }

  document(): void {
    const { openapi, info, servers, tags, paths, components } = this.#shape('document', this.#doc, '#') as { openapi: string; info: Obj; servers: Obj[]; tags: Obj[]; paths: Record<string, Obj>; components: Record<string, Record<string, Obj>> };
    this.#expect(/^3\.1\.\d+$/.test(openapi), '#', `openapi is ${openapi}`);
    this.#shape('info', info, '#/info');
    this.#shape('license', info['license'] as Obj, '#/info/license');
    for (const server of servers) this.#shape('server', server, '#/servers');
    for (const tag of tags) this.#shape('tag', tag, '#/tags');
    this.#components(components);
    for (const [path, item] of Object.entries(paths)) this.#path(path, item);
    const names = paths === undefined ? [] : Object.keys(paths).map((path) => path.replace(/\{\w+\}/g, '{}'));
    this.#expect(new Set(names).size === names.length, '#/paths', 'two templates differ in the names of their variables only');
    const used = Object.values(paths).flatMap((item) => Object.values(item as Record<string, Obj>).flatMap((operation) => operation['tags'] as string[]));
    for (const tag of tags) this.#expect(used.includes(tag['name'] as string), '#/tags', `${String(tag['name'])} is used by nobody`);
    for (const tag of used) this.#expect(tags.some(({ name }) => name === tag), '#/tags', `${tag} is not declared`);
    this.#references(this.#doc, '#');
    for (const [kind, entries] of Object.entries(components)) {
      if (kind === 'securitySchemes') continue;
      for (const name of Object.keys(entries)) this.#expect(this.#refs.has(`#/components/${kind}/${name}`), `#/components/${kind}/${name}`, 'is used by nobody');
    }
  }

  #components(components: Record<string, Record<string, Obj>>): void {
    this.#shape('components', components, '#/components');
    for (const [kind, entries] of Object.entries(components)) for (const name of Object.keys(entries)) this.#expect(COMPONENT_NAME.test(name), `#/components/${kind}/${name}`, 'has a name that is not possible');
    for (const [name, parameter] of Object.entries(components['parameters'] ?? {})) this.#parameter(parameter, `#/components/parameters/${name}`);
    for (const [name, response] of Object.entries(components['responses'] ?? {})) this.#response(response, `#/components/responses/${name}`);
    for (const [name, schema] of Object.entries(components['schemas'] ?? {})) this.#schema(schema, `#/components/schemas/${name}`);
    for (const scheme of Object.values(components['securitySchemes'] ?? {})) this.#shape('httpScheme', scheme, '#/components/securitySchemes');
  }

  #path(path: string, item: Obj): void {
    this.#expect(/^\/(?:[\w.$%-]+|\{\w+\})?(?:\/(?:[\w.$%-]+|\{\w+\}))*$/.test(path), path, 'is no path');
    const variables = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!);
    for (const [method, operation] of Object.entries(item)) {
      const at = `${method} ${path}`;
      this.#expect(METHODS.includes(method), at, 'is no method');
      this.#operation(operation as Obj, variables, at);
    }
  }

  #operation(operation: Obj, variables: readonly string[], at: string): void {
    this.#shape('operation', operation, at);
    const id = operation['operationId'] as string;
    this.#expect(/^[A-Za-z]\w*$/.test(id) && !this.#ids.has(id), at, `operationId ${id} is taken or not possible`);
    this.#ids.add(id);
    const parameters = (operation['parameters'] as Obj[]).map((parameter) => this.#resolved(parameter));
    for (const parameter of parameters) this.#parameter(parameter, at);
    const keys = parameters.map((parameter) => `${String(parameter['in'])} ${String(parameter['name']).toLowerCase()}`);
    this.#expect(new Set(keys).size === keys.length, at, `has a parameter twice: ${keys.join(', ')}`);
    const inPath = parameters.filter((parameter) => parameter['in'] === 'path').map((parameter) => parameter['name'] as string);
    this.#expect(inPath.toSorted().join() === variables.toSorted().join(), at, `has path parameters ${inPath.join()} for ${variables.join()}`);
    const body = operation['requestBody'] as Obj | undefined;
    if (body !== undefined) {
      this.#shape('requestBody', body, at);
      this.#content(body['content'] as Record<string, Obj>, at);
      this.#expect(!/^(get|head|delete)/.test(at), at, 'has a body');
    }
    const responses = Object.entries(operation['responses'] as Record<string, Obj>);
    this.#expect(responses.some(([status]) => /^[23]/.test(status)), at, 'never succeeds');
    for (const [status, response] of responses) {
      this.#expect(STATUS.test(status), at, `has a status ${status}`);
      this.#response(this.#resolved(response), `${at} ${status}`);
    }
    for (const requirement of operation['security'] as Obj[]) for (const name of Object.keys(requirement)) this.#expect(name in (this.#doc['components'] as { securitySchemes: Obj }).securitySchemes, at, `security scheme ${name} is not declared`);
  }

  #parameter(parameter: Obj, at: string): void {
    this.#shape('parameter', parameter, at);
    const place = parameter['in'] as string;
    this.#expect(['path', 'query', 'header', 'cookie'].includes(place), at, `has a parameter in ${place}`);
    this.#expect(place !== 'path' || parameter['required'] === true, at, 'has a path parameter that is not required');
    this.#expect(place !== 'header' || !['accept', 'content-type', 'authorization'].includes((parameter['name'] as string).toLowerCase()), at, 'has a header parameter that is ignored');
    this.#schema(parameter['schema'] as Obj, at);
  }

  #response(response: Obj, at: string): void {
    this.#shape('response', response, at);
    for (const header of Object.values((response['headers'] ?? {}) as Record<string, Obj>)) this.#shape('header', header, at);
    if (response['content'] !== undefined) this.#content(response['content'] as Record<string, Obj>, at);
  }

  #content(content: Record<string, Obj>, at: string): void {
    this.#expect(Object.keys(content).length > 0, at, 'has empty content');
    for (const [type, media] of Object.entries(content)) {
      this.#expect(MEDIA_TYPE.test(type), at, `has a media type ${type}`);
      this.#shape('media', media, `${at} ${type}`);
      if (media['schema'] !== undefined) this.#schema(media['schema'] as Obj, `${at} ${type}`);
    }
  }

  /** Schemas are of their own dialect; what the checker does not know shows in the walk. Here: required members exist. */
  #schema(schema: Obj, at: string): void {
    this.#expect(typeof schema === 'object' && schema !== null, at, 'has no schema');
    const properties = Object.keys((schema['properties'] ?? {}) as object);
    if (schema['additionalProperties'] === false) for (const name of (schema['required'] ?? []) as string[]) this.#expect(properties.includes(name), at, `requires ${name}, which is not described`);
  }

  /** Every reference leads somewhere. */
  #references(value: unknown, at: string): void {
    if (typeof value !== 'object' || value === null) return;
    const reference = (value as Obj)['$ref'];
    if (typeof reference === 'string') {
      this.#refs.add(reference);
      try {
        resolveRef(reference, this.#doc);
      } catch {
        this.errors.push(`${at}: ${reference} leads nowhere`);
      }
    }
    for (const [name, each] of Object.entries(value)) this.#references(each, `${at}/${name}`);
  }

  #resolved(value: Obj): Obj {
    return typeof value['$ref'] === 'string' ? resolveRef(value['$ref'], this.#doc) as Obj : value;
  }

  #shape<T>(kind: string, value: T, at: string): T {
    const { must, may } = SHAPES[kind]!;
    const names = Object.keys(value as object);
    for (const name of must) this.#expect(names.includes(name), at, `lacks ${name}`);
    for (const name of names) this.#expect(must.includes(name) || may.includes(name), at, `has ${name}, which means nothing in a ${kind}`);
    return value;
  }

  #expect(isRight: boolean, at: string, what: string): void {
    if (!isRight) this.errors.push(`${at}: ${what}`);
  }
}
