import * as client from '@eventstore/db-client';
import { test } from 'node:test';
import * as testing from 'skua/testing';
import { suite } from './suite.mjs';

suite({ test, testing, client });
