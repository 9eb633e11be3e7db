import * as client from '@eventstore/db-client';
import { test } from 'vitest';
import * as testing from '../../local/testing/index.ts';
import { suite } from './suite.ts';

suite({ test, testing, client });
