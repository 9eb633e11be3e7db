import * as client from '@eventstore/db-client';
import * as testing from 'skua/testing';
import { test } from 'vitest';
import { suite } from './suite.mjs';

suite({ test, testing, client });
