import type { App } from '../../http/context.ts';
import type { GrpcService } from '../call.ts';
import { StreamsService } from '../messages/streams.ts';
import { appendMethod } from './append-call.ts';
import { batchAppendMethod } from './batch-append.ts';
import { deleteMethod, tombstoneMethod } from './delete.ts';
import { appendBudget } from './stream-limits.ts';
import { readMethod } from './read-call.ts';

/** The streams as clients of the first generation see them. */
export function streams(app: App): GrpcService {
  const budget = appendBudget(app);
  return {
    name: StreamsService.name,
    methods: [readMethod, appendMethod(budget), deleteMethod, tombstoneMethod, batchAppendMethod(budget)],
  };
}
