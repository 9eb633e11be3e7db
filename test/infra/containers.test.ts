import { existsSync, globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { environmentName } from '../../infra/runtime/config/option-names.ts';
import { OPTIONS } from '../../infra/runtime/config/options.ts';
import { isMember } from '../../local/config/cluster-settings.ts';
import { loadConfig } from '../../local/config/load-config.ts';
import { instructionsOf } from '../local/containerfile.ts';

/** What runs in containers, as far as files can tell: Containerfile, compose files, and manifests of Kubernetes. */

const FOLDER = fileURLToPath(new URL('../../infra/packaging', import.meta.url));
const read = (name: string): string => readFileSync(join(FOLDER, name), 'utf8');
const VARIABLES = new Set(Object.keys(OPTIONS).map(environmentName));
/** Variables of the SDK that say where a bucket is, and whose it is. */
const OF_THE_SDK = /^AWS_(?:SHARED_CREDENTIALS_FILE|ENDPOINT_URL_S3|REGION|ACCESS_KEY_ID|SECRET_ACCESS_KEY)$/;
const isKnown = (name: string): boolean => VARIABLES.has(name) || OF_THE_SDK.test(name);
/** What must not be written down. */
const SECRET = /SECRET|PASSWORD|ACCESS_KEY/;
/** How long every way of running a node lets it stop, in seconds: as the systemd unit says. */
const STOP_SECONDS = Number(/^TimeoutStopSec=(\d+)$/m.exec(read('skua.service'))![1]);

const instructions = instructionsOf(read('Containerfile'));
const last = instructions.slice(instructions.findLastIndex(([name]) => name === 'FROM'));
const of = (name: string): string | undefined => last.findLast(([key]) => key === name)?.[1];
const VOLUME = of('VOLUME')!;
const [USER] = of('USER')!.split(':');

describe('Containerfile', () => {
  test('copies what archive.sh makes, of which the builder gets nothing else', () => {
    const copies = instructions.filter(([name]) => name === 'COPY').map(([, text]) => text);
    expect(copies).toEqual(['dist/skua-*-linux-*.tar.gz /archives/', '--from=unpacked /opt/skua /opt/skua']);
    expect(read('archive.sh')).toMatch(/^name=skua-\$version-linux-\$arch$/m);
    expect(read('Containerfile.dockerignore').trim().split('\n')).toEqual(['**', '!dist/skua-*.tar.gz']);
  });

  test('unpacks the archive of the architecture that is built for', () => {
    const run = instructions.find(([name]) => name === 'RUN')![1];
    expect(instructions.map(([name, text]) => `${name} ${text}`)).toContain('ARG TARGETARCH');
    expect(run).toContain('sed s/amd64/x64/');
  });

  test('has no Node.js of its own below, and runs by a number that is not root, with health, a volume and a signal', () => {
    const bases = instructions.filter(([name]) => name === 'FROM').map(([, text]) => text.split(' ')[0]);
    for (const base of bases) expect(base).toMatch(/^docker\.io\/library\/debian:\d+-slim$/);
    expect(of('USER')).toMatch(/^[1-9]\d*:[1-9]\d*$/);
    expect(of('RUN')).toContain(`useradd --uid ${USER} --user-group`);
    expect([VOLUME, of('EXPOSE'), of('STOPSIGNAL')]).toEqual(['/data', '2113', 'SIGTERM']);
    expect(of('HEALTHCHECK')).toContain('["/opt/skua/node/bin/node", "/opt/skua/infra/packaging/healthcheck.mjs"]');
    expect([JSON.parse(of('ENTRYPOINT')!), JSON.parse(of('CMD')!)]).toEqual([['/opt/skua/bin/skua'], ['start']]);
  });

  test('keeps data in the volume by the default of the node', () => {
    const { values, warnings } = loadConfig({ argv: [], env: {}, readFile: () => null });
    expect([join(of('WORKDIR')!, values.Db), warnings]).toEqual([VOLUME, []]);
  });

  test('says what it is by labels that are known', () => {
    const names = [...of('LABEL')!.matchAll(/(\S+)="[^"]+"/g)].map(([, name]) => name);
    expect(names).toEqual(['title', 'description', 'licenses'].map((name) => `org.opencontainers.image.${name}`));
  });

  test('names variables that are options', () => {
    const named = ['Containerfile', 'healthcheck.mjs', 'compose.yaml', 'README.md']
      .map(read)
      .flatMap((text) => [...text.matchAll(/SERVER_[A-Z_]+/g)].map(([name]) => name));
    expect(named.length).toBeGreaterThan(3);
    for (const name of named) expect([...VARIABLES]).toContain(name);
  });
});

interface Service {
  readonly image: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly env_file: string;
  readonly stop_grace_period: string;
  readonly volumes: readonly string[];
  readonly ports: readonly string[];
  readonly secrets?: readonly string[];
}

interface Compose {
  readonly services: Readonly<Record<string, Service>>;
  readonly volumes: Readonly<Record<string, null>>;
  readonly secrets?: Readonly<Record<string, { readonly file: string }>>;
}

describe.for(['compose.yaml', 'cluster.compose.yaml'])('%s', (file) => {
  const compose = parse(read(file), { merge: true }) as Compose;
  const services = Object.entries(compose.services);

  test('gives each node a volume of its own, a port of this machine alone, and time to stop', () => {
    for (const [, { image, volumes, ports, stop_grace_period }] of services) {
      expect(image).toBe('skua');
      expect(volumes.map((each) => each.split(':')[1])).toEqual([VOLUME]);
      expect(Object.keys(compose.volumes)).toContain(volumes[0]!.split(':')[0]);
      expect(ports).toEqual([expect.stringMatching(/^127\.0\.0\.1:\d+:2113$/)]);
      expect(stop_grace_period).toBe(`${STOP_SECONDS / 60}m`);
    }
    const each = services.flatMap(([, { volumes, ports }]) => [...volumes, ...ports]);
    expect(new Set(each).size).toBe(each.length);
  });

  test('reads what is secret from files that are not committed, and sets what is known', () => {
    const ignored = readFileSync(join(FOLDER, '../../.gitignore'), 'utf8');
    expect(ignored).toContain('/infra/packaging/secrets/');
    for (const [, { environment, env_file, secrets = [] }] of services) {
      expect(env_file).toMatch(/^secrets\//);
      for (const name of secrets) expect(compose.secrets![name]!.file).toMatch(/^secrets\//);
      for (const [name, value] of Object.entries(environment)) {
        expect([name, isKnown(name), SECRET.test(name)]).toEqual([name, true, false]);
        if (value.startsWith('/run/')) expect(secrets, name).toContain(value.slice('/run/secrets/'.length));
      }
    }
  });
});

describe('cluster.compose.yaml', () => {
  const { services } = parse(read('cluster.compose.yaml'), { merge: true }) as Compose;

  test('has three members, which reach each other by their names', () => {
    expect(Object.keys(services)).toHaveLength(3);
    for (const [name, { environment }] of Object.entries(services))
      expect(environment['SERVER_NODE_HOST_ADVERTISE_AS']).toBe(name);
  });

  test('starts by the options that are to be shared', () => {
    const env = { ...services['node1']!.environment };
    const shared = 'Storage: s3://bucket/cluster\nClusterSize: 3\nDisableTls: true\nClusterSecret: only-we-three\n';
    const { values, given } = loadConfig({
      argv: [],
      env: { ...env, SERVER_NODE_IP: '0.0.0.0' },
      readFile: (path) => (path === '/run/secrets/cluster.conf' ? shared : null),
    });
    expect([isMember(values, given), values.NodeHostAdvertiseAs]).toEqual([true, 'node1']);
  });
});

interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string };
  readonly periodSeconds: number;
  readonly failureThreshold?: number;
}

interface Container {
  readonly name: string;
  readonly args: readonly string[];
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
  readonly env: readonly { readonly name: string; readonly value?: string }[];
  readonly envFrom: readonly Readonly<Record<'configMapRef' | 'secretRef', { readonly name: string }>>[];
  readonly startupProbe: Probe;
  readonly livenessProbe: Probe;
  readonly readinessProbe: Probe;
  readonly securityContext: unknown;
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
}

interface Labels {
  readonly [name: string]: string;
}

interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly labels: Labels };
  readonly data: Readonly<Record<string, string>>;
  readonly spec: {
    readonly clusterIP?: string;
    readonly publishNotReadyAddresses?: boolean;
    readonly selector: Labels & { readonly matchLabels: Labels };
    readonly ports: readonly { readonly port: number; readonly targetPort: string }[];
    readonly serviceName: string;
    readonly replicas: number;
    readonly podManagementPolicy: string;
    readonly maxUnavailable: number;
    readonly volumeClaimTemplates: readonly { readonly metadata: { readonly name: string } }[];
    readonly template: {
      readonly metadata: { readonly labels: Labels };
      readonly spec: {
        readonly terminationGracePeriodSeconds: number;
        readonly securityContext: Readonly<Record<string, unknown>>;
        readonly topologySpreadConstraints: readonly { readonly labelSelector: { readonly matchLabels: Labels } }[];
        readonly containers: readonly [Container];
        readonly volumes: readonly { readonly name: string; readonly configMap?: { readonly name: string } }[];
      };
    };
  };
}

/** Every manifest, with the file that has it. */
const manifests = globSync('kubernetes/*.yaml', { cwd: FOLDER })
  .sort()
  .flatMap((file) =>
    parseAllDocuments(read(file)).map((document) => {
      expect([file, document.errors, document.warnings]).toEqual([file, [], []]);
      return { file, manifest: document.toJS() as Manifest };
    }),
  );
function manifest(kind: string, name: string): Manifest {
  const found = manifests.filter(({ manifest: each }) => each.kind === kind && each.metadata.name === name);
  expect(found, `${kind} ${name}`).toHaveLength(1);
  return found[0]!.manifest;
}

describe('manifests of Kubernetes', () => {
  const { spec } = manifest('StatefulSet', 'skua');
  const pod = spec.template.spec;
  const [container] = pod.containers;
  const options = manifest('ConfigMap', 'skua-options');
  /** Variables of Secrets, as their comment makes them. */
  const secret = [...read('kubernetes/options.yaml').matchAll(/--from-literal=(\w+)=/g)].map(([, name]) => name!);

  test('are of versions that are stable, and hold no secret', () => {
    expect(manifests.map(({ manifest: { apiVersion, kind } }) => `${apiVersion} ${kind}`)).toEqual([
      'apps/v1 StatefulSet',
      'policy/v1 PodDisruptionBudget',
      'v1 ConfigMap',
      'v1 ConfigMap',
      'v1 Service',
      'v1 Service',
    ]);
    for (const { manifest: each } of manifests)
      for (const name of Object.keys(each.data ?? {})) expect(name).not.toMatch(SECRET);
  });

  test('select the pods that are made', () => {
    const { labels } = spec.template.metadata;
    expect(manifests.map(({ manifest: { metadata } }) => metadata.labels)).toEqual(manifests.map(() => labels));
    expect([spec.selector.matchLabels, pod.topologySpreadConstraints[0]!.labelSelector.matchLabels]).toEqual([
      labels,
      labels,
    ]);
    expect(manifest('PodDisruptionBudget', 'skua').spec.selector.matchLabels).toEqual(labels);
    for (const name of ['skua', 'skua-members']) expect(manifest('Service', name).spec.selector).toEqual(labels);
  });

  test('lead to the port of the image, for clients and among members that are not ready', () => {
    const [port] = container.ports;
    expect(container.ports).toEqual([{ name: 'http', containerPort: Number(of('EXPOSE')) }]);
    for (const name of ['skua', 'skua-members'])
      expect(manifest('Service', name).spec.ports).toMatchObject([{ port: 2113, targetPort: port!.name }]);
    expect(manifest('Service', spec.serviceName).spec).toMatchObject({
      clusterIP: 'None',
      publishNotReadyAddresses: true,
    });
  });

  test('start as many members as vote, at once, and let one go at a time', () => {
    const config = parse(options.data['skua.conf']!) as { readonly ClusterSize: number };
    expect([spec.replicas, spec.podManagementPolicy, config.ClusterSize]).toEqual([3, 'Parallel', 3]);
    expect(manifest('PodDisruptionBudget', 'skua').spec.maxUnavailable).toBe(1);
  });

  test('give a member the options that it needs, and no variable that it does not know', () => {
    const own = container.env.filter(({ name }) => !name.startsWith('POD_'));
    const bucket = manifest('ConfigMap', 'skua-bucket-location').data;
    const names = [...own.map(({ name }) => name), ...Object.keys(bucket), ...secret];
    for (const name of names) expect([name, isKnown(name)]).toEqual([name, true]);
    expect(own).toEqual([
      { name: 'SERVER_NODE_HOST_ADVERTISE_AS', value: `$(POD_NAME).${spec.serviceName}.$(POD_NAMESPACE).svc` },
    ]);
    const { values, given, warnings } = loadConfig({
      argv: [...container.args].slice(1),
      env: {
        SERVER_NODE_IP: '0.0.0.0',
        SERVER_NODE_HOST_ADVERTISE_AS: 'skua-0.skua-members.default.svc',
        ...Object.fromEntries(secret.filter((name) => name.startsWith('SERVER_')).map((name) => [name, 'a-long-text'])),
      },
      readFile: (path) => (path === '/etc/skua/skua.conf' ? options.data['skua.conf']! : null),
    });
    expect(isMember(values, given)).toBe(true);
    expect([values.ClusterSecret, values.DefaultAdminPassword, warnings]).toEqual(['a-long-text', 'a-long-text', []]);
  });

  test('take variables and files from what is there, or is said to be made', () => {
    const made = [...read('kubernetes/options.yaml').matchAll(/create secret generic (\S+)/g)].map(([, name]) => name);
    expect(container.envFrom.flatMap(({ secretRef }) => secretRef?.name ?? [])).toEqual(made);
    for (const { configMapRef } of container.envFrom)
      if (configMapRef !== undefined) manifest('ConfigMap', configMapRef.name);
    for (const { configMap } of pod.volumes) if (configMap !== undefined) manifest('ConfigMap', configMap.name);
    const volumes = [...pod.volumes, ...spec.volumeClaimTemplates.map(({ metadata }) => metadata)];
    expect(container.volumeMounts.map(({ name }) => name).sort()).toEqual(volumes.map(({ name }) => name).sort());
    expect(container.volumeMounts.map(({ mountPath }) => mountPath)).toEqual([VOLUME, '/etc/skua', '/tmp']);
  });

  test('run as the user of the image, with nothing to write but volumes', () => {
    expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: Number(USER), fsGroup: Number(USER) });
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
  });

  test('ask whether a member lives only once it has started, and give it time to stop', () => {
    const { startupProbe, livenessProbe, readinessProbe } = container;
    expect([startupProbe, livenessProbe, readinessProbe].map(({ httpGet }) => httpGet)).toEqual([
      { path: '/health/live', port: 'http' },
      { path: '/health/live', port: 'http' },
      { path: '/health/ready', port: 'http' },
    ]);
    expect(startupProbe.periodSeconds * startupProbe.failureThreshold!).toBe(6 * 3_600);
    expect(pod.terminationGracePeriodSeconds).toBe(STOP_SECONDS);
  });
});

test('every file of the packaging that a comment of these files names is there', () => {
  const texts = [
    'Containerfile',
    'compose.yaml',
    'cluster.compose.yaml',
    'README.md',
    ...manifests.map(({ file }) => file),
  ].map(read);
  const named = texts.flatMap((text) => [...text.matchAll(/infra\/packaging\/([\w./-]+)/g)].map(([, name]) => name!));
  expect(named.length).toBeGreaterThan(5);
  for (const name of named.filter((each) => !each.startsWith('secrets')))
    expect([name, existsSync(join(FOLDER, name))]).toEqual([name, true]);
  for (const text of texts)
    for (const [name] of text.matchAll(/(?<![\w./-])\w[\w-]*\.yaml/g))
      expect([name, globSync(`**/${name}`, { cwd: FOLDER }).map((each) => basename(each))]).toEqual([name, [name]]);
});
