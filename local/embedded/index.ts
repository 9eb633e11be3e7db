/** `skua/embedded`: the store without a server. */
export type * from './api.ts';
export { openStore } from './open.ts';
export { SkuaError } from '../../core/base/errors.ts';
export { isSkuaError, STORE_ERRORS } from './errors.ts';
export type { StoreErrorCode } from './errors.ts';
