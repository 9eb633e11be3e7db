import type { Handler } from './context.ts';

/**
 * Who may call an operation (options-and-security.md section 9). `anyone` is asked for no rights, but wrong credentials
 * are refused all the same; `probe` is answered before credentials are looked at. `stream`: the access list of the
 * stream decides, in the handler; `self`: the handler compares the user in the path with the caller.
 */
export type Access = 'probe' | 'anyone' | 'gossip' | 'statistics' | 'authenticated' | 'self' | 'operators' | 'administrators' | 'stream';

/** What a method of a path does. */
export interface Operation {
  readonly handler: Handler;
  readonly access: Access;
  readonly doc: OperationDoc;
}

/** What the OpenAPI document says of an operation. */
export interface OperationDoc {
  readonly summary: string;
}

/** A path and what it answers. */
export interface Route {
  readonly path: string;
  /** `Access-Control-Allow-Methods`; with the repetitions that the reference shows where several of its templates match. */
  readonly methods: string;
  readonly operations: Readonly<Record<string, Operation>>;
}

export function operation(access: Access, handler: Handler, doc: OperationDoc): Operation {
  return { handler, access, doc };
}
