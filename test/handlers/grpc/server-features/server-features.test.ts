import { expect, test } from 'vitest';
import { ANONYMOUS } from '../../../../core/base/principal.ts';
import type { GrpcService } from '../../../../handlers/grpc/call.ts';
import {
  serverFeatures,
  VERSION_WITH_RECORDS,
  VERSION_WITHOUT_RECORDS,
} from '../../../../handlers/grpc/server-features/server-features.ts';
import { servicesOf } from '../../../../handlers/grpc.ts';
import { appOf } from '../../../../handlers/http/context.ts';
import { ScriptedCall, securedGrpc } from '../../../grpc/harness.ts';
import { FakeNode } from '../../../support/fake-node.ts';
import { AS } from '../../secured.ts';

const PATH = '/event_store.client.server_features.ServerFeatures/GetSupportedMethods';

interface Supported {
  readonly methods: readonly {
    readonly method_name: string;
    readonly service_name: string;
    readonly features?: readonly string[];
  }[];
  readonly event_store_server_version: string;
}

async function supported(h: ReturnType<typeof securedGrpc>, who: Record<string, string> = {}): Promise<Supported> {
  return (await h.call(PATH, {}, who)).received[0] as unknown as Supported;
}

test('every method of every service for clients is named in lower case, and nothing else', async () => {
  const h = securedGrpc({ node: new FakeNode() });
  const { methods } = await supported(h);
  const paths = servicesOf(appOf(h.context))
    .filter(({ name }) => !name.includes('cluster'))
    .flatMap((service) => service.methods.map(({ path }) => path.slice(1).toLowerCase()));
  expect(methods.map(({ service_name, method_name }) => `${service_name}/${method_name}`)).toEqual(paths);
  expect(paths).toContain('event_store.client.users.users/changepassword');
  expect(paths).toContain('event_store.client.server_features.serverfeatures/getsupportedmethods');
  expect(await supported(h, AS.admin)).toEqual(await supported(h));
});

test('each of them is answered', async () => {
  const h = securedGrpc({ node: new FakeNode() });
  const { methods } = await supported(h);
  for (const { path } of servicesOf(appOf(h.context)).flatMap((service) => service.methods)) {
    const call = h.open(path, [], { metadata: AS.anonymous });
    const ending = await call.ended;
    expect('httpStatus' in ending ? ending : ending.status, path).not.toBe(12);
  }
  expect(methods.length).toBeGreaterThan(15);
});

test('what is not there is not told of: no users without security, no operations without a node', async () => {
  const services = async (h: ReturnType<typeof securedGrpc>) =>
    new Set((await supported(h)).methods.map(({ service_name }) => service_name));
  expect([...(await services(securedGrpc({ node: new FakeNode(), security: null })))]).not.toContain(
    'event_store.client.users.users',
  );
  expect([...(await services(securedGrpc()))]).not.toContain('event_store.client.operations.operations');
});

test('features and version follow from what there is', async () => {
  const service = (name: string, ...methods: readonly string[]): GrpcService => ({
    name,
    methods: methods.map((method) => ({
      path: `/${name}/${method}`,
      place: 'here',
      access: 'anyone',
      isUnary: true,
      run() {},
    })),
  });
  const services = [
    service('event_store.client.persistent_subscriptions.PersistentSubscriptions', 'GetInfo'),
    service('event_store.client.streams.Streams', 'Read', 'Append', 'BatchAppend'),
  ];
  const app = appOf(securedGrpc().context);
  const answer = async (others: readonly GrpcService[]): Promise<Supported> => {
    const call = new ScriptedCall(PATH).push({}).halfClose();
    await serverFeatures(others).methods[0]!.run({
      call: { principal: ANONYMOUS, audited: null } as never,
      app,
      transport: call,
      signal: call.request.signal,
      append: () => Promise.reject(new Error('nothing is appended')),
    });
    return call.received[0] as Supported;
  };
  const { methods, event_store_server_version } = await answer(services);
  expect(methods.map(({ method_name, features }) => [method_name, features])).toEqual([
    ['getinfo', ['stream', 'all']],
    ['read', ['position', 'events']],
    ['append', undefined],
    ['batchappend', ['deadline_duration']],
    ['getsupportedmethods', undefined],
  ]);
  expect(event_store_server_version).toBe(VERSION_WITHOUT_RECORDS);
  const withRecords = await answer([
    ...services,
    service('kurrentdb.protocol.v2.streams.StreamsService', 'AppendSession', 'AppendRecords'),
  ]);
  expect(withRecords.event_store_server_version).toBe(VERSION_WITH_RECORDS);
  expect(withRecords.methods.map(({ method_name }) => method_name)).toContain('appendrecords');
});
