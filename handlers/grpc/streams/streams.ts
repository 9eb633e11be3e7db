import type { App } from '../../http/context.ts';
import type { GrpcService } from '../call.ts';
import { StreamsService } from '../messages/streams.ts';
import { appendMethod } from './append.ts';
import { batchAppendMethod } from './batch.ts';
import { deleteMethod, tombstoneMethod } from './delete.ts';
import { appendBudget } from './limits.ts';
import { readMethod } from './read.ts';

/** The streams as clients of the first generation see them. */
export function streams(app: App): GrpcService {
  const budget = appendBudget(app);
  return { name: StreamsService.name, methods: [readMethod, appendMethod(budget), deleteMethod, tombstoneMethod, batchAppendMethod(budget)] };
}
