import type { AuditAction } from '../../core/ports/audit.ts';
import type { Access, App, AppFeatures, AppOptions, Branch, Call, Handler, Reply } from './context.ts';

/**
 * Which member of a cluster decides an operation (core/cluster/README.md, rule 13). `here`: the one that is asked.
 * `writes`: that one too, but what it writes is decided by the one that leads. `leader`: the one that leads, to which
 * others pass the request on.
 */
export type DecidedBy = 'here' | 'writes' | 'leader';

export type Arrive = (call: Call, app: App) => Promise<Uint8Array | Reply>;

/** What a method of a path does. */
export interface Operation {
  readonly handler: Handler;
  readonly access: Access;
  readonly place: DecidedBy;
  readonly doc: OperationDoc;
  /** Under which name the audit log records the operation, also refusals; absent for what it does not record. */
  readonly audit?: AuditAction;
  /**
   * Takes the body in before the request is passed on to the leader, where that has limits of its own; a reply refuses
   * it.
   */
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
  readonly example: string | number | boolean | readonly string[];
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

/** What a node may lack, and its routes with it. Users are there unless security is off. */
export type Feature = Exclude<keyof AppFeatures, 'scavengeOrders'> | 'users';

/** A heading of the OpenAPI document. */
export type Tag =
  | 'Streams'
  | 'Scavenging'
  | 'Backup'
  | 'Users'
  | 'Subscriptions'
  | 'Connectors'
  | 'Page'
  | 'Cluster'
  | 'Administration'
  | 'Node';

/** How failures are answered, and how the OpenAPI document describes that. */
export interface Failures {
  readonly reply: Branch['fail'];
  readonly docs: (...statuses: readonly number[]) => Readonly<Record<number, ResponseDoc>>;
}

/** What is said of the routes of an area together. */
export interface Traits {
  readonly tag: Tag;
  /** Without it there are no such paths; left out: nothing that a node could lack. */
  readonly feature?: Feature;
  /** The option that takes the paths away; left out, or null: none does. */
  readonly offBy?:
    | keyof Pick<AppOptions, 'disableAdminUi' | 'disableStatsOnHttp' | 'disableGossipOnHttp' | 'disableAtomPub'>
    | null;
  /** Left out: problem documents. */
  readonly failures?: Failures;
  /** Whether a client may ask for an answer of the leader alone. */
  readonly heedsRequiresLeader?: boolean;
}

/** A path and what it answers. */
export interface Route extends Traits {
  readonly path: string;
  /**
   * `Access-Control-Allow-Methods`; with the repetitions that the reference shows where several of its templates match.
   */
  readonly methods: string;
  readonly operations: Readonly<Record<string, Operation>>;
}

/** A route of which its area says the rest. */
export type RouteOfArea = Omit<Route, keyof Traits> & Partial<Traits>;

/** Routes of an area; what a route says itself counts. */
export function area(traits: Traits, routes: readonly RouteOfArea[]): readonly Route[] {
  return routes.map((route) => ({ ...traits, ...route }));
}

export function operation(
  access: Access,
  place: DecidedBy,
  handler: Handler,
  doc: OperationDoc,
  audit?: AuditAction,
): Operation {
  return { handler, access, place, doc, ...(audit !== undefined && { audit }) };
}
