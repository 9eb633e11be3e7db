import '../../support/fake-time.ts';
import * as kurrent from '@kurrent/kurrentdb-client';
import { idleTests } from './suites/idle.ts';

idleTests(kurrent, false);
