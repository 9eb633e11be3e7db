/**
 * A schema by Standard Schema (https://standardschema.dev), as zod, valibot, arktype and others make them: the part of
 * that interface which is used here. No library is needed for it.
 */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1;
    /** Of the library. */
    readonly vendor: string;
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
    /** For the compiler alone: nothing has it when it runs. */
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

/** What a schema says of a value: what it has made of it, or what is wrong. */
export type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] };

/** What is wrong, and where in the value. */
export interface SchemaIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** What a schema takes. */
export type InputOf<Schema extends StandardSchema> = NonNullable<Schema['~standard']['types']>['input'];

/** What a schema makes of it. */
export type OutputOf<Schema extends StandardSchema> = NonNullable<Schema['~standard']['types']>['output'];
