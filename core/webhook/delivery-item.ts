/** An accepted call on its way into its stream. */
export interface Delivery {
  /** Null where the sender gives none, or deliveries are not told apart. */
  readonly deliveryId: string | null;
  readonly eventId: string;
  readonly data: Uint8Array;
  readonly metadata: Uint8Array;
  /** Where the event goes, and its type; those of an earlier note of the delivery win. */
  stream: string;
  type: string;
  /** Last event number of the stream when the first note of the delivery was made; null until then. */
  after: number | null;
  /** Number of its note in the deliveries stream, -1 without one. */
  note: number;
  /** Number of the newest earlier note of this delivery, whose event is missing; -1 for none. */
  seen: number;
  /** The event turned out to be there already. */
  isWritten: boolean;
}
