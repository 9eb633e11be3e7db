import type { CheckpointAnswer, CheckpointOptions } from '../../core/streams/api.ts';

/** Documents of checkpoints of readers, as they are sent: types alone. */

/** GET `/checkpoint?options=…`. */
export type CheckpointAsked = CheckpointOptions;

export type CheckpointDocument = CheckpointAnswer;
