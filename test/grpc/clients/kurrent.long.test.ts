import * as kurrent from '@kurrent/kurrentdb-client';
import { describeClient } from './describe-client.ts';
import { persistentTests } from './suites/persistent.ts';
import { securityTests } from './suites/security.ts';
import { severalStreamsTests } from './suites/several-streams.ts';
import { streamTests } from './suites/streams.ts';
import { subscriptionTests } from './suites/subscriptions.ts';

describeClient(kurrent, { isNew: true, isBoth: true }, (suite) => {
  streamTests(suite);
  subscriptionTests(suite);
  severalStreamsTests(suite);
  persistentTests(suite);
  if (suite.isSecure) securityTests(suite);
});
