import type { ProblemDocument } from '../documents/problem.ts';
import { decodeText } from '../../core/base/text.ts';
import { isChange } from '../http/browsers.ts';
import type { Access, App, Call, Reply } from '../http/context.ts';
import { isPresent } from '../http/presence.ts';
import { commonHeaders } from '../http/reply.ts';
import { operation } from '../http/route.ts';
import type {
  HeaderDoc,
  Operation,
  OperationDoc,
  ParameterDoc,
  ResponseDoc,
  Route,
  Schema,
  Tag,
} from '../http/route.ts';
import { sharedBody } from '../http/shared-body.ts';
import { prefixOf } from '../http/url.ts';
import { ADMIN_DOCS, ADMIN_SCHEMAS } from './administration-paths.ts';
import { AUTO_SCAVENGE_SCHEMAS } from './auto-scavenge-paths.ts';
import { BACKUP_SCHEMAS } from './backup-paths.ts';
import { CHECKPOINT_SCHEMAS } from './checkpoint-paths.ts';
import { CLUSTER_SCHEMAS } from './cluster-paths.ts';
import { CONNECTOR_SCHEMAS } from './connector-paths.ts';
import { ERASURE_SCHEMAS } from './erasure-paths.ts';
import { INSPECTION_SCHEMAS } from './inspection-paths.ts';
import { NODE_SCHEMAS } from './node-paths.ts';
import { PAGE_SCHEMAS } from './page-paths.ts';
import { ATTRIBUTE_INDEX_SCHEMAS } from './attribute-index-paths.ts';
import { DCB_SCHEMAS } from './dcb-paths.ts';
import { REDACTION_SCHEMAS } from './redaction-paths.ts';
import { PARAMETERS, PATH_PARAMETERS, PROBLEMS, problems, TEXT } from './schema-parts.ts';
import { STREAM_SCHEMAS } from './stream-paths.ts';
import { SUBSCRIPTION_SCHEMAS } from './subscription-paths.ts';
import { USER_SCHEMAS } from './user-paths.ts';

/**
 * The OpenAPI document, made from the table of routes that the router uses, so that it can't lack one or name one too
 * many.
 */

const OPENAPI_VERSION = '3.1.1';

const PROBLEM: Schema = {
  type: 'object',
  description: 'A problem document (RFC 9457).',
  properties: {
    code: { type: 'string', pattern: '^[a-z_]+$', description: 'Stable; made for programs.' },
    title: TEXT,
    detail: { type: 'string', description: 'What is wrong, and what to do.' },
    hint: { type: 'string', description: 'More on what to do, if `detail` is a fixed text that tools compare.' },
    scavengeId: { type: 'string', description: 'The scavenge it is about.' },
    backupId: { type: 'string', description: 'The backup it is about.' },
    key: {
      type: ['string', 'null'],
      description: 'The key of the metadata that is not what it must be; null for all of them.',
    },
    data: { type: 'object', description: 'What a program needs to react, where the code promises it.' },
    file: { type: ['string', 'null'], description: 'The file that could not be loaded.' },
    reason: { type: 'string', description: 'Why it could not be loaded.' },
    success: { type: 'boolean', description: 'Of users routes: false.' },
    error: { type: 'string', description: 'Of users routes: the name of the failure.' },
  } satisfies Record<keyof Omit<ProblemDocument, 'seen'>, Schema>,
  required: ['code', 'title', 'detail'],
};

/** What the headings are about, in their order. */
const TAGS: Readonly<Record<Tag, string>> = {
  Streams: 'Appending and reading events.',
  Scavenging: 'Removing what was deleted or has expired.',
  Backup: "Backups of the node's files.",
  Users: 'Who may log in, and the groups they are in.',
  Subscriptions: 'Consumer groups that share the events of a stream.',
  Connectors: 'Sources of webhooks.',
  Page: 'The page for browsers.',
  Cluster: 'Requests between cluster members.',
  Administration: 'Controlling the node.',
  Node: 'Health, information, statistics.',
};

const WHO: Readonly<Record<Access, string>> = {
  probe: 'Anyone; credentials are ignored.',
  sender: 'Anyone with the signature that the connector asks for; credentials are ignored.',
  anyone: 'Anyone, but not with wrong credentials.',
  gossip: "Anyone, unless the node's options require a login.",
  statistics: "Any logged-in user; anyone, if the node's options allow it.",
  authenticated: 'Any logged-in user.',
  self: 'The user in the path, and where stated `$admins`.',
  operators: '`$ops` and `$admins`.',
  backup: '`$backup` and `$admins`.',
  administrators: '`$admins`.',
  members: 'The other members of the cluster.',
  stream: 'As the access list of the stream says.',
};
/** Those whom a role is asked of, so that a caller can lack it. */
const REFUSING: ReadonlySet<Access> = new Set(['self', 'operators', 'backup', 'administrators', 'members', 'stream']);
/** Access without a login, so that credentials can't be wrong. */
const UNASKED: ReadonlySet<Access> = new Set(['probe', 'sender']);
const FOR_ANONYMOUS: ReadonlySet<Access> = new Set(['anyone', 'gossip', 'statistics']);

interface DocumentOptions {
  readonly version: string;
  /** Whether callers have to log in. */
  readonly isSecured: boolean;
}

/** The document as an object of plain values. */
export function openApiDocument(routes: readonly Route[], options: DocumentOptions) {
  const paths: Record<string, Record<string, unknown>> = {};
  // Without security there are no users.
  const present = options.isSecured ? routes : routes.filter(({ feature }) => feature !== 'users');
  for (const route of present) {
    const methods = Object.entries(route.operations).map(([method, operation]) => [
      method.toLowerCase(),
      operationObject(route, method, operation, options),
    ]);
    paths[pathTemplate(route.path)] = Object.fromEntries(methods);
  }
  const used = new Set<string>(present.map(({ tag }) => tag));
  return {
    openapi: OPENAPI_VERSION,
    info: {
      title: 'Skua',
      version: options.version,
      description:
        "The HTTP interface of a Skua node. Pages of other origins can't read or change anything unless the node's options list their origin. In addition to the answers listed with an operation, the server itself rejects malformed requests: 400, 408, 413, 414 and 431, without a body. `OPTIONS` works on every path, and `HEAD` wherever `GET` does: with the same headers, and no body. An event stream ends there at once.",
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/', description: 'The node that sent this document.' }],
    tags: Object.entries(TAGS)
      .filter(([name]) => used.has(name))
      .map(([name, description]) => ({ name, description })),
    paths,
    components: {
      schemas: {
        Problem: PROBLEM,
        ...STREAM_SCHEMAS,
        ...ADMIN_SCHEMAS,
        ...AUTO_SCAVENGE_SCHEMAS,
        ...BACKUP_SCHEMAS,
        ...USER_SCHEMAS,
        ...SUBSCRIPTION_SCHEMAS,
        ...CONNECTOR_SCHEMAS,
        ...CLUSTER_SCHEMAS,
        ...PAGE_SCHEMAS,
        ...NODE_SCHEMAS,
        ...INSPECTION_SCHEMAS,
        ...ERASURE_SCHEMAS,
        ...REDACTION_SCHEMAS,
        ...ATTRIBUTE_INDEX_SCHEMAS,
        ...CHECKPOINT_SCHEMAS,
        ...DCB_SCHEMAS,
      },
      parameters: Object.fromEntries(
        Object.entries(PARAMETERS).map(([name, parameter]) => [name, parameterObject(parameter)]),
      ),
      responses: Object.fromEntries(
        Object.entries(PROBLEMS).map(([name, response]) => [name, responseObject(response)]),
      ),
      securitySchemes: { basic: { type: 'http', scheme: 'basic', description: 'Login name and password, in UTF-8.' } },
    },
  };
}

/** `/a/:b/:c+` is `/a/{b}/{c}`: the router's last segments may stand for several. */
export function pathTemplate(path: string): string {
  return path.replace(/:(\w+)[+*?]?/g, '{$1}');
}

function operationObject(route: Route, method: string, { access, doc }: Operation, { isSecured }: DocumentOptions) {
  const { path, tag } = route;
  const { summary, description, body } = doc;
  const who = isSecured ? `Access: ${WHO[access]}` : '';
  const text = [description, who].filter(Boolean).join('\n\n');
  return {
    tags: [tag],
    operationId: operationIdOf(path, method),
    summary,
    ...(text !== '' && { description: text }),
    security:
      !isSecured || UNASKED.has(access) ? [] : FOR_ANONYMOUS.has(access) ? [{}, { basic: [] }] : [{ basic: [] }],
    parameters: parametersOf(path, doc).map((parameter) =>
      componentOr(PARAMETER_NAMES, 'parameters', parameter, parameterObject),
    ),
    ...(body !== undefined && {
      requestBody: {
        ...(body.description !== undefined && { description: body.description }),
        required: body.required,
        content: body.content,
      },
    }),
    responses: Object.fromEntries(
      Object.entries(responsesOf(route, method, access, doc, isSecured)).map(([status, response]) => [
        status,
        componentOr(RESPONSE_NAMES, 'responses', response, responseObject),
      ]),
    ),
  };
}

/** The parameters of the path in its order, then the others. */
function parametersOf(path: string, doc: OperationDoc): readonly ParameterDoc[] {
  const given = doc.parameters ?? [];
  const inPath = [...path.matchAll(/:(\w+)/g)].map(([, name]) => {
    const parameter = given.find((each) => each.in === 'path' && each.name === name) ?? PATH_PARAMETERS[name!];
    if (parameter === undefined)
      throw new Error(`No parameter ':${name}' of ${path} is described: add it to PATH_PARAMETERS.`);
    return parameter;
  });
  return [...inPath, ...given.filter((each) => each.in !== 'path')];
}

/** What the operation says, and what every one of its access can answer. */
function responsesOf(
  { failures }: Route,
  method: string,
  access: Access,
  doc: OperationDoc,
  isSecured: boolean,
): Readonly<Record<number, ResponseDoc>> {
  const statuses = UNASKED.has(access)
    ? []
    : !isSecured
      ? [500, 503]
      : REFUSING.has(access)
        ? [401, 403, 429, 500, 503]
        : [401, 429, 500, 503];
  // Some things are refused to everybody, such as to append to `$all`, and what changes something to pages of other
  // origins.
  const always = isChange(method) || (!isSecured && access === 'stream') ? [403] : [];
  const failed = failures?.docs ?? problems;
  return { ...failed(...statuses, ...always), ...doc.responses };
}

const PARAMETER_NAMES = new Map<unknown, string>(
  Object.entries(PARAMETERS).map(([name, parameter]) => [parameter, name]),
);
const RESPONSE_NAMES = new Map<unknown, string>(Object.entries(PROBLEMS).map(([name, response]) => [response, name]));

/** A reference to the component that this is, else what it is itself. */
function componentOr<T>(
  names: ReadonlyMap<unknown, string>,
  kind: string,
  value: T,
  toObject: (value: T) => object,
): object {
  const name = names.get(value);
  return name === undefined ? toObject(value) : { $ref: `#/components/${kind}/${name}` };
}

function parameterObject({ name, in: place, description, required, schema, example }: ParameterDoc): object {
  return {
    name,
    in: place,
    description,
    ...((required === true || place === 'path') && { required: true }),
    schema,
    example,
  };
}

function responseObject({ description, headers, content }: ResponseDoc): object {
  return {
    description,
    ...(headers !== undefined && {
      headers: Object.fromEntries(Object.entries(headers).map(([name, header]) => [name, headerObject(header)])),
    }),
    ...(content !== undefined && { content }),
  };
}

function headerObject({ description, required, schema }: HeaderDoc): object {
  return { description, ...(required === true && { required }), schema };
}

/** `getStreamsByStreamMetadata` for GET `/streams/:stream/metadata`. */
function operationIdOf(path: string, method: string): string {
  const words = path
    .split('/')
    .filter((part) => part !== '')
    .map((part) => {
      const isVariable = part.startsWith(':');
      const word = part
        .replace(/%24/g, '')
        .split(/[^A-Za-z0-9]+/)
        .filter(Boolean)
        .map((each) => each[0]!.toUpperCase() + each.slice(1))
        .join('');
      return isVariable ? `By${word}` : word;
    });
  return method.toLowerCase() + (words.length === 0 ? 'Root' : words.join(''));
}

/** How the document names its node where no proxy has that under a path; the first in it. */
const AT_ROOT = '"servers":[{"url":"/"';
/** One for each app, not indented: half of it would be white space. */
const documents = new WeakMap<App, Uint8Array<ArrayBuffer>>();

/** GET `/openapi.json`, over the routes that `routesFor` says the node has. */
export function openApiRoute(routesFor: (options: App['options']) => readonly Route[]): Route {
  const handler = (call: Call, app: App): Reply => {
    let document = documents.get(app);
    if (document === undefined) {
      document = sharedBody(
        new TextEncoder().encode(
          JSON.stringify(
            openApiDocument(
              routesFor(app.options).filter((route) => isPresent(app, route)),
              { version: app.options.version, isSecured: app.security !== null },
            ),
          ),
        ),
      );
      documents.set(app, document);
    }
    const prefix = prefixOf(call);
    // Caches know nothing of forwarding headers.
    const [body, cacheControl] =
      prefix === ''
        ? ([document, 'max-age=300, public'] as const)
        : ([
            decodeText(document).replace(AT_ROOT, `${AT_ROOT.slice(0, -2)}${prefix}"`),
            'max-age=300, private',
          ] as const);
    return {
      status: 200,
      statusText: 'OK',
      headers: {
        ...commonHeaders(call.methods),
        'content-type': 'application/json; charset=utf-8',
        'cache-control': cacheControl,
      },
      body,
    };
  };
  return {
    path: '/openapi.json',
    tag: 'Node',
    methods: 'GET, OPTIONS',
    operations: { GET: operation('anyone', 'here', handler, ADMIN_DOCS.openApi) },
  };
}
