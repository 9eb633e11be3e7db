import '../../support/fake-time.ts';
import * as eventstore from '@eventstore/db-client';
import type { Library } from './nodes.ts';
import { idleTests } from './suites/idle.ts';

idleTests({ ...eventstore, KurrentDBClient: eventstore.EventStoreDBClient } as unknown as Library, true);
