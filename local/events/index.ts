/** `skua/events`: types of events that are defined once, for every event store. */
export type * from './api.ts';
export type { SchemaIssue, SchemaResult, StandardSchema } from './standard-schema.ts';
export { defineEvents, type, versions } from './define-events.ts';
export { SkuaError } from '../../core/base/errors.ts';
export { isSkuaError } from '../event-store/store-errors.ts';
