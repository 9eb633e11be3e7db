import type { AuditAction } from '../../core/ports/audit.ts';
import type { Access, App, Call, Handler, Reply } from './context.ts';

/**
 * Which member of a cluster decides an operation (core/cluster/README.md, rule 13). `here`: the one that is asked. `writes`: that one too, but what it writes is decided by the one that
 * leads. `leader`: the one that leads, to which others pass the request on.
 */
export type Place = 'here' | 'writes' | 'leader';

export type Arrive = (call: Call, app: App) => Promise<Uint8Array | Reply>;

/** What a method of a path does. */
export interface Operation {
  readonly handler: Handler;
  readonly access: Access;
  readonly place: Place;
  readonly doc: OperationDoc;
  /** Under which name the audit is told of it, also of refusals; absent for what it is not told of. */
  readonly audit?: AuditAction;
  /** Takes the body in before the request is passed on to the leader, where that has limits of its own; a reply refuses it. */
  readonly arrive?: Arrive;
}

/**
 * What the OpenAPI document says of an operation. What follows from the route itself is added there: the parameters of
 * the path, and the answers that every operation or every operation of an access can give.
 */
export interface OperationDoc {
  readonly summary: string;
  /** CommonMark. */
  readonly description?: string;
  /** Of the query and in headers; of the path only where the usual description of the name does not fit. */
  readonly parameters?: readonly ParameterDoc[];
  readonly body?: BodyDoc;
  /** By status. */
  readonly responses?: Readonly<Record<number, ResponseDoc>>;
}

export interface ParameterDoc {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly description: string;
  /** Those of the path are required anyway. */
  readonly required?: boolean;
  readonly schema: Schema;
  /** A value that works, as it stands in a URL or header once escaped. */
  readonly example: string | number | boolean;
}

export interface BodyDoc {
  readonly description?: string;
  readonly required: boolean;
  readonly content: MediaDocs;
}

export interface ResponseDoc {
  readonly description: string;
  readonly headers?: Readonly<Record<string, HeaderDoc>>;
  /** Absent: the answer has no body. */
  readonly content?: MediaDocs;
}

export interface HeaderDoc {
  readonly description: string;
  /** Whether every such answer has it. */
  readonly required?: boolean;
  readonly schema: Schema;
}

/** What a body holds, by media type. */
export type MediaDocs = Readonly<Record<string, { readonly schema?: Schema; readonly example?: unknown }>>;

/** A JSON schema of the dialect 2020-12. */
export interface Schema {
  readonly [keyword: string]: unknown;
}

/** A path and what it answers. */
export interface Route {
  readonly path: string;
  /** `Access-Control-Allow-Methods`; with the repetitions that the reference shows where several of its templates match. */
  readonly methods: string;
  readonly operations: Readonly<Record<string, Operation>>;
}

export function operation(access: Access, place: Place, handler: Handler, doc: OperationDoc, audit?: AuditAction): Operation {
  return { handler, access, place, doc, ...(audit !== undefined && { audit }) };
}
