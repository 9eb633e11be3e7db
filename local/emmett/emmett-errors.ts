import { EmmettError } from 'emmett-current';

/**
 * A failure with a stable `code`; `errorCode` is the HTTP status that Emmett's web adapters make of it. Codes of this
 * store itself: `stream_deleted` (410) for a stream that was deleted for ever; `invalid_event`,
 * `invalid_event_number`, `invalid_count` and `invalid_expected_version` (400) for what can't be asked for. Others are
 * those of the store below, whose error is the cause.
 */
export class SkuaEventStoreError extends EmmettError {
  readonly code: string;

  constructor(code: string, errorCode: number, message: string, cause?: unknown) {
    super({ errorCode, message });
    // Emmett's own constructor sets its own.
    Object.setPrototypeOf(this, SkuaEventStoreError.prototype);
    this.name = 'SkuaEventStoreError';
    this.code = code;
    if (cause !== undefined) this.cause = cause;
  }
}
