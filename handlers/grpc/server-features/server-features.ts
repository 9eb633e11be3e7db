import { unary } from '../call.ts';
import type { GrpcService } from '../call.ts';
import { ServerFeaturesService } from '../messages/server-features.ts';
import type { SupportedMethod, SupportedMethods } from '../messages/server-features.ts';
import { StreamsServiceService } from '../messages/streams-v2.ts';

/**
 * The version that clients are told: not ours, but that of the reference database whose calls they may make. They
 * decide by the methods and features in the list wherever they can, and by the version where a thing has no name of its
 * own there. `26.1.0` says of a node with the second generation of streams that `AppendRecords` is one of its methods
 * (26.1 is the first with it); what else came since 23.10, and is not here, has methods of its own, which are not in
 * the list. A node without is as the 23.10 line is. Three numbers, and nothing else, or some clients fail to read it.
 */
export const VERSION_WITH_RECORDS = '26.1.0';
export const VERSION_WITHOUT_RECORDS = '23.10.8';

/** Parts of the names of services that clients may know of; others are between members. */
const FOR_CLIENTS = ['client', 'kurrentdb.protocol'] as const;

/**
 * What a method can do that others of its name can't, by path in lower case; one that ends with a slash stands for all
 * methods of a service.
 */
const FEATURES: ReadonlyMap<string, readonly string[]> = new Map([
  ['event_store.client.persistent_subscriptions.persistentsubscriptions/', ['stream', 'all']],
  ['event_store.client.streams.streams/read', ['position', 'events']],
  ['event_store.client.streams.streams/batchappend', ['deadline_duration']],
]);

/** What a node with these services can do: itself, and nothing that would be UNIMPLEMENTED. */
export function serverFeatures(others: readonly GrpcService[]): GrpcService {
  const service: GrpcService = {
    name: ServerFeaturesService.name,
    methods: [
      unary(ServerFeaturesService.methods.GetSupportedMethods, { place: 'node', access: 'anyone' }, () => supported),
    ],
  };
  const supported = supportedMethods([...others, service]);
  return service;
}

function supportedMethods(services: readonly GrpcService[]): SupportedMethods {
  const methods = services
    .filter(({ name }) => FOR_CLIENTS.some((part) => name.includes(part)))
    .flatMap((service) => service.methods.map(({ path }) => supportedMethod(path)));
  const hasRecords = services.some((service) =>
    service.methods.some(({ path }) => path === StreamsServiceService.methods.AppendRecords.path),
  );
  return { methods, eventStoreServerVersion: hasRecords ? VERSION_WITH_RECORDS : VERSION_WITHOUT_RECORDS };
}

function supportedMethod(path: string): SupportedMethod {
  const [serviceName, methodName] = path.slice(1).toLowerCase().split('/') as [string, string];
  return {
    methodName,
    serviceName,
    features: FEATURES.get(`${serviceName}/${methodName}`) ?? FEATURES.get(`${serviceName}/`) ?? [],
  };
}
