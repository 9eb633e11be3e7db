import { EventStoreDBClient } from '@eventstore/db-client';
import { expect, test } from 'vitest';
import { getSkuaEventStore } from '../../local/emmett/index.ts';
import type { EventSource } from '../../local/emmett/index.ts';
import { embedded, functions, nodeByGrpc, nodeByHttp } from './backends.ts';
import { describeEventStore } from './contract.ts';

describeEventStore('a store of this process', () => embedded());
describeEventStore('the older client', () => nodeByGrpc((text) => EventStoreDBClient.connectionString(text)));
describeEventStore('a node by HTTP', nodeByHttp);
describeEventStore('functions', functions);

test.each([null, undefined, 'http://127.0.0.1:2113', {}, { append: () => {} }])('of %s none is made', (source) => {
  expect(() => getSkuaEventStore(source as unknown as EventSource)).toThrow(TypeError);
});
