import { KurrentDBClient } from '@kurrent/kurrentdb-client';
import { nodeByGrpc } from './backends.ts';
import { describeEventStore } from './contract.ts';

describeEventStore('the newer client', () =>
  nodeByGrpc((text) => KurrentDBClient.connectionString(text.replace('esdb:', 'kurrentdb:'))),
);
