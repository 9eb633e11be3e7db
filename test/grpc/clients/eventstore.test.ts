import * as eventstore from '@eventstore/db-client';
import { IS_LONG_RUN } from '../../support/run-size.ts';
import { describeClient } from './describe-client.ts';
import type { Library } from './nodes.ts';
import { persistentTests } from './suites/persistent.ts';
import { securityTests } from './suites/security.ts';
import { streamTests } from './suites/streams.ts';
import { subscriptionTests } from './suites/subscriptions.ts';

describeClient(
  { ...eventstore, KurrentDBClient: eventstore.EventStoreDBClient } as unknown as Library,
  { isNew: false, isBoth: IS_LONG_RUN },
  (suite) => {
    streamTests(suite);
    if (!IS_LONG_RUN) return;
    subscriptionTests(suite);
    persistentTests(suite);
    if (suite.isSecure) securityTests(suite);
  },
);
