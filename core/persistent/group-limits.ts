/** Bounds of the engine; the defaults are what a node uses. */
export interface EngineLimits {
  readonly groupsMax: number;
  readonly consumersPerGroupMax: number;
  /** Deliveries under way to one consumer, whatever it asks for. */
  readonly consumerBufferMax: number;
  /** Messages that all groups together hold, read and not done: about 350 bytes each beside the event. */
  readonly openMessagesMax: number;
  /** Bytes of events that all groups together hold, read and not yet taken. */
  readonly bufferBytesMax: number;
  /** Of these, what one group without a consumer reads ahead. */
  readonly idleBufferBytesMax: number;
  /** Bytes of one page that is read. */
  readonly pageBytesMax: number;
  /** Deliveries that wait for a consumer to take them: a reader that is slow holds one such page. */
  readonly deliveriesMax: number;
  readonly deliveryBytesMax: number;
  /** Messages that are read again at once to be sent again, and parked in one write. */
  readonly batchMax: number;
  /** Milliseconds between two looks at timeouts and checkpoints. */
  readonly tickMs: number;
  /** Milliseconds after which events that wait in a buffer are read again, since they may have been deleted. */
  readonly staleMs: number;
  /** Milliseconds before what has failed is tried again. */
  readonly retryMs: number;
  /** Bytes of the log that a group of `$all` passes without a wanted event before it reports where it stands. */
  readonly scanCheckpointBytes: number;
}

export const DEFAULT_LIMITS: EngineLimits = {
  groupsMax: 1_000,
  consumersPerGroupMax: 1_000,
  consumerBufferMax: 10_000,
  openMessagesMax: 200_000,
  bufferBytesMax: 67_108_864,
  idleBufferBytesMax: 262_144,
  pageBytesMax: 1_048_576,
  deliveriesMax: 256,
  deliveryBytesMax: 1_048_576,
  batchMax: 64,
  tickMs: 100,
  staleMs: 10_000,
  retryMs: 1_000,
  scanCheckpointBytes: 16_777_216,
};

/** What all groups together hold. */
export class Held {
  messages = 0;
  bytes = 0;
}
