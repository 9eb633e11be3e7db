/** `skua/embedded`: the store without a server. */
export type * from './api.ts';
export { openStore } from './open-embedded.ts';
export { SkuaError } from '../../core/base/errors.ts';
export { isSkuaError } from '../event-store/store-errors.ts';
export { STORE_ERRORS } from './embedded-errors.ts';
export type { StoreErrorCode } from './embedded-errors.ts';
