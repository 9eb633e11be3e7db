/** `skua/client`: the store of a node, a cluster or functions, over `fetch`. */
export type * from './api.ts';
export { connect } from './connect.ts';
export { SkuaError } from '../../core/base/errors.ts';
export { isSkuaError } from '../event-store/store-errors.ts';
export { CLIENT_ERRORS } from './client-errors.ts';
