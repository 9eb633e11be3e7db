import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const FOLDER = fileURLToPath(new URL('../../infra/aws', import.meta.url));
const isInstalled = existsSync(path.join(FOLDER, 'node_modules/aws-cdk-lib'));
const why = isInstalled ? '' : ' (skipped: npm ci --prefix infra/aws installs what it takes)';

interface Resource {
  readonly Type: string;
  readonly Properties: Record<string, any>;
  readonly DeletionPolicy?: string;
  readonly Condition?: string;
}

interface Statement {
  readonly Sid?: string;
  readonly Effect: string;
  readonly Action: string | string[];
  readonly Resource: unknown;
  readonly Condition?: Record<string, any>;
}

describe.skipIf(!isInstalled)(`the stack${why}`, () => {
  let folder: string;
  let template: { Resources: Record<string, Resource>; Parameters: Record<string, any>; Outputs: Record<string, any> };

  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'skua-stack-'));
    for (const name of ['webhook', 'admin', 'streams', 'tick']) {
      await mkdir(path.join(folder, name));
      await writeFile(path.join(folder, name, 'index.mjs'), `export const handler = async () => '${name}';`);
    }
    // By a name that the compiler does not follow: its packages are installed on their own.
    const file = path.join(FOLDER, 'cdk/synthesise.ts');
    const { synthesise } = (await import(/* @vite-ignore */ file)) as { synthesise(bundles: string): typeof template };
    template = synthesise(folder);
  });

  afterAll(() => rm(folder, { recursive: true, force: true }));

  const all = (type: string) => Object.entries(template.Resources).filter(([, { Type }]) => Type === type);
  const one = (type: string) => all(type)[0]![1];
  const lambda = (id: string) => all('AWS::Lambda::Function').find(([name]) => name.startsWith(id))![1].Properties;

  const isOfBackups = (properties: Record<string, any>) =>
    properties['PolicyName'] === 'Backups' || properties['PolicyName'] === 'BackupKey';

  /** The statements about the bucket that a function's role has. */
  function statements(id: string): Statement[] {
    const role = (lambda(id)['Role'] as { 'Fn::GetAtt': [string, string] })['Fn::GetAtt'][0];
    return all('AWS::IAM::Policy')
      .filter(
        ([, { Properties }]) => JSON.stringify(Properties['Roles']).includes(`"${role}"`) && !isOfBackups(Properties),
      )
      .flatMap(([, { Properties }]) => Properties['PolicyDocument'].Statement as Statement[]);
  }

  const actions = (id: string) =>
    statements(id)
      .flatMap(({ Action }) => Action)
      .filter((action) => action.startsWith('s3:'));
  /** What stands behind the prefix in the resources of an action. */
  const folders = (id: string, action: string) =>
    statements(id)
      .filter(({ Action }) => [Action].flat().includes(action))
      .flatMap(({ Resource }) => [Resource].flat())
      .map((resource) => {
        const parts = (resource as { 'Fn::Join': [string, unknown[]] })['Fn::Join'][1];
        expect(parts).toContainEqual({ Ref: 'Prefix' });
        return parts.at(-1);
      });

  it('has a bucket that is encrypted, closed, kept, and gives up old uploads', () => {
    const { Properties, DeletionPolicy } = one('AWS::S3::Bucket');
    expect(DeletionPolicy).toBe('Retain');
    expect(
      Properties['BucketEncryption'].ServerSideEncryptionConfiguration[0].ServerSideEncryptionByDefault.SSEAlgorithm,
    ).toBe('AES256');
    expect(Properties['PublicAccessBlockConfiguration']).toEqual({
      BlockPublicAcls: true,
      BlockPublicPolicy: true,
      IgnorePublicAcls: true,
      RestrictPublicBuckets: true,
    });
    expect(Properties['LifecycleConfiguration'].Rules).toEqual([
      expect.objectContaining({ Status: 'Enabled', AbortIncompleteMultipartUpload: { DaysAfterInitiation: 2 } }),
      {
        Id: 'expire-failed-logins',
        Status: 'Enabled',
        ExpirationInDays: 1,
        Prefix: { 'Fn::Join': ['', [{ Ref: 'Prefix' }, '/failures/']] },
      },
    ]);
    // What a scavenge removes must be gone.
    expect(Properties['VersioningConfiguration']).toBeUndefined();
  });

  it('lets nobody use the bucket without TLS, or replace a commit or a manifest', () => {
    const denied = one('AWS::S3::BucketPolicy').Properties['PolicyDocument'].Statement as Statement[];
    expect(denied).toContainEqual(
      expect.objectContaining({
        Effect: 'Deny',
        Action: 's3:*',
        Condition: { Bool: { 'aws:SecureTransport': 'false' } },
      }),
    );
    const createOnly = denied.find(({ Sid }) => Sid === 'CreateOnly')!;
    expect(createOnly).toMatchObject({
      Effect: 'Deny',
      Action: 's3:PutObject',
      Condition: { Null: { 's3:if-none-match': 'true' } },
    });
    expect(JSON.stringify(createOnly.Resource)).toMatch(/\/log\/\*.*\/manifest\/\*/);
  });

  it('gives each function no more than it needs', () => {
    for (const id of ['Webhook', 'Streams', 'Admin'])
      expect(actions(id).sort()).toEqual(['s3:GetObject', 's3:ListBucket', 's3:PutObject']);
    expect(folders('Webhook', 's3:PutObject')).toEqual(['/log/*']);
    expect(folders('Streams', 's3:PutObject').sort()).toEqual(['/failures/*', '/log/*']);
    expect(folders('Admin', 's3:PutObject').sort()).toEqual(['/control/*', '/failures/*', '/log/*']);
    expect(actions('Tick').sort()).toEqual([
      's3:AbortMultipartUpload',
      's3:DeleteObject',
      's3:GetObject',
      's3:ListBucket',
      's3:PutObject',
    ]);
    for (const action of ['s3:GetObject', 's3:PutObject', 's3:DeleteObject'])
      expect(folders('Tick', action)).toEqual(['/*']);
  });

  it('lets the tick keep backups in a bucket that is there already, where one is named, and nobody else', () => {
    const [id, policy] = all('AWS::IAM::Policy').find(([name]) => name.startsWith('BackupPolicy'))!;
    expect(policy.Condition).toBe('HasBackups');
    expect(policy.Properties['Roles']).toEqual([{ Ref: expect.stringMatching(/^TickRole/) }]);
    const [keep, list] = policy.Properties['PolicyDocument'].Statement as [Statement, Statement];
    expect(keep.Action).toEqual(['s3:GetObject', 's3:PutObject', 's3:DeleteObject', 's3:AbortMultipartUpload']);
    expect(JSON.stringify(keep.Resource)).toMatch(/:s3:::.*"Ref":"BackupBucket".*"Ref":"BackupPrefix".*\/\*/);
    expect(JSON.stringify(list.Condition)).toContain('"Ref":"BackupPrefix"');
    expect(
      all('AWS::IAM::Policy').filter(
        ([name, { Properties }]) => name !== id && JSON.stringify(Properties).includes('BackupBucket'),
      ),
    ).toEqual([]);
    const { Variables } = lambda('Tick')['Environment'] as { Variables: Record<string, { 'Fn::If': unknown[] }> };
    expect(Variables['SERVER_BACKUP__REPOSITORY']!['Fn::If']).toEqual([
      'HasBackups',
      expect.anything(),
      { Ref: 'AWS::NoValue' },
    ]);
    expect(Variables['SERVER_BACKUP__EVERY_SEC']!['Fn::If']).toEqual([
      'HasBackups',
      { Ref: 'BackupEverySeconds' },
      { Ref: 'AWS::NoValue' },
    ]);
    expect(Variables['SERVER_BACKUP__KEY_SECRET']!['Fn::If']).toEqual([
      'HasBackupKey',
      { Ref: 'BackupKeyName' },
      { Ref: 'AWS::NoValue' },
    ]);
    const keyPolicy = all('AWS::IAM::Policy').find(([name]) => name.startsWith('BackupKeyPolicy'))![1];
    expect([keyPolicy.Condition, keyPolicy.Properties['Roles']]).toEqual([
      'HasBackupKey',
      [{ Ref: expect.stringMatching(/^TickRole/) }],
    ]);
    expect(keyPolicy.Properties['PolicyDocument'].Statement).toEqual([
      expect.objectContaining({ Action: 'secretsmanager:GetSecretValue', Effect: 'Allow' }),
    ]);
    expect(JSON.stringify(keyPolicy.Properties['PolicyDocument'].Statement[0].Resource)).toMatch(
      /:secret:.*"Ref":"BackupKeyName".*-\?\?\?\?\?\?/,
    );
    for (const other of ['Webhook', 'Streams', 'Admin'])
      expect(JSON.stringify(lambda(other)['Environment'])).not.toContain('BACKUP');
    expect(all('AWS::S3::Bucket')).toHaveLength(1);
  });

  it('lets no function see anything outside of the prefix, and write no log but its own', () => {
    for (const id of ['Webhook', 'Streams', 'Admin', 'Tick']) {
      expect(folders(id, 's3:GetObject')).toEqual(['/*']);
      const list = statements(id).find(({ Action }) => [Action].flat().includes('s3:ListBucket'))!;
      expect(JSON.stringify(list.Condition)).toContain('{"Ref":"Prefix"}');
      expect(statements(id).some(({ Resource }) => Resource === '*')).toBe(false);
    }
    expect(JSON.stringify(all('AWS::IAM::Role'))).not.toContain('service-role');
  });

  it('runs the bundles as they are', () => {
    expect(all('AWS::Lambda::Function')).toHaveLength(4);
    for (const id of ['Webhook', 'Streams', 'Admin']) {
      expect(lambda(id)).toMatchObject({
        Handler: 'index.handler',
        Runtime: 'nodejs24.x',
        Timeout: 29,
        MemorySize: { Ref: 'FunctionMemory' },
      });
    }
    expect(lambda('Tick')).toMatchObject({
      Timeout: 900,
      EphemeralStorage: { Size: 2_048 },
      MemorySize: { Ref: 'TickMemory' },
      Environment: { Variables: { SERVER_TICK_SECONDS: '50' } },
    });
    expect(all('AWS::Lambda::LayerVersion')).toEqual([]);
  });

  it('has no secret in the configuration of a function, only its name, and lets each read those that it needs', () => {
    expect(all('AWS::SecretsManager::Secret')).toHaveLength(3);
    for (const [, { Properties }] of all('AWS::SecretsManager::Secret'))
      expect(Properties).toMatchObject({ GenerateSecretString: { PasswordLength: 40 } });
    expect(JSON.stringify(template)).not.toContain('{{resolve:');
    const secretId = (name: string) => all('AWS::SecretsManager::Secret').find(([id]) => id.startsWith(name))![0];
    const [admin, ops, token] = ['AdminPassword', 'OpsPassword', 'DataProtectionToken'].map(secretId) as [
      string,
      string,
      string,
    ];
    const needs: Record<string, Record<string, string>> = {
      Webhook: { SERVER_CONNECTORS__DATA_PROTECTION__TOKEN_SECRET: token },
      Streams: { SERVER_DEFAULT_ADMIN_PASSWORD_SECRET: admin, SERVER_DEFAULT_OPS_PASSWORD_SECRET: ops },
      Admin: {
        SERVER_DEFAULT_ADMIN_PASSWORD_SECRET: admin,
        SERVER_DEFAULT_OPS_PASSWORD_SECRET: ops,
        SERVER_CONNECTORS__DATA_PROTECTION__TOKEN_SECRET: token,
      },
      Tick: {},
    };
    for (const [id, secrets] of Object.entries(needs)) {
      const { Variables } = lambda(id)['Environment'] as { Variables: Record<string, unknown> };
      const named = Object.fromEntries(
        Object.entries(Variables).filter(([name]) => name.endsWith('_SECRET') && !name.startsWith('SERVER_BACKUP')),
      );
      expect(named).toEqual(
        Object.fromEntries(Object.entries(secrets).map(([name, secret]) => [name, { Ref: secret }])),
      );
      expect(Object.keys(Variables).filter((name) => /PASSWORD$|TOKEN$|KEY$/.test(name))).toEqual([]);
      const read = statements(id).filter(({ Action }) =>
        [Action].flat().some((action) => action.startsWith('secretsmanager:')),
      );
      expect(read.flatMap(({ Action }) => Action)).toEqual(
        Object.keys(secrets).length > 0 ? ['secretsmanager:GetSecretValue'] : [],
      );
      expect(read.flatMap(({ Resource }) => [Resource].flat())).toEqual(
        Object.values(secrets).map((secret) => ({ Ref: secret })),
      );
    }
  });

  it('keeps calls for each function that everybody reaches, and no more', () => {
    for (const [id, fallback] of [
      ['Streams', 50],
      ['Webhook', 50],
      ['Admin', 10],
    ] as const) {
      expect(template.Parameters[`${id}Concurrency`]).toMatchObject({ Type: 'Number', Default: fallback, MinValue: 0 });
      // Small accounts have nothing to reserve.
      expect(lambda(id)['ReservedConcurrentExecutions']).toEqual({
        'Fn::If': [`Has${id}Concurrency`, { Ref: `${id}Concurrency` }, { Ref: 'AWS::NoValue' }],
      });
    }
    expect(lambda('Tick')['ReservedConcurrentExecutions']).toBeUndefined();
  });

  it('sends each path to its function', () => {
    const integrations = Object.fromEntries(
      all('AWS::ApiGatewayV2::Integration').map(([id, { Properties }]) => [
        id,
        JSON.stringify(Properties['IntegrationUri']),
      ]),
    );
    const routes = Object.fromEntries(
      all('AWS::ApiGatewayV2::Route').map(([, { Properties }]) => {
        const target = Object.keys(integrations).find((id) =>
          JSON.stringify(Properties['Target']).includes(`"${id}"`),
        )!;
        return [Properties['RouteKey'] as string, /"(Webhook|Admin|Streams)/.exec(integrations[target]!)![1]];
      }),
    );
    expect(routes).toMatchObject({
      $default: 'Streams',
      'ANY /webhook/{proxy+}': 'Webhook',
      'ANY /admin/{proxy+}': 'Admin',
      'ANY /users': 'Admin',
      'ANY /users/{proxy+}': 'Admin',
      'ANY /connectors/{proxy+}': 'Admin',
      'ANY /auto-scavenge/{proxy+}': 'Admin',
    });
    expect(all('AWS::Lambda::Url')).toHaveLength(3);
    expect(Object.keys(template.Outputs)).toEqual(
      expect.arrayContaining(['ApiUrl', 'StreamsUrl', 'AdminUrl', 'WebhookUrl', 'BucketName']),
    );
  });

  it('runs a tick every minute, once', () => {
    const { Properties } = one('AWS::Events::Rule');
    expect(Properties['ScheduleExpression']).toBe('rate(1 minute)');
    expect(Properties['Targets'][0].RetryPolicy.MaximumRetryAttempts).toBe(0);
    expect(one('AWS::Lambda::EventInvokeConfig').Properties).toMatchObject({
      MaximumRetryAttempts: 0,
      MaximumEventAgeInSeconds: 60,
    });
  });

  it('keeps logs for a month, and tells of failures and of ticks that do not run', () => {
    expect(all('AWS::Logs::LogGroup').map(([, { Properties }]) => Properties['RetentionInDays'])).toEqual([
      30, 30, 30, 30,
    ]);
    const alarms = Object.fromEntries(
      all('AWS::CloudWatch::Alarm').map(([id, { Properties }]) => [id.slice(0, -8), Properties]),
    );
    expect(Object.keys(alarms).sort()).toEqual([
      'AdminErrors',
      'AdminFailures',
      'AdminThrottles',
      'StreamsErrors',
      'StreamsFailures',
      'StreamsThrottles',
      'TickErrors',
      'TickMissing',
      'TickThrottles',
      'WebhookErrors',
      'WebhookFailures',
      'WebhookThrottles',
    ]);
    expect(alarms['TickMissing']).toMatchObject({
      MetricName: 'Invocations',
      ComparisonOperator: 'LessThanThreshold',
      Threshold: 1,
      TreatMissingData: 'breaching',
    });
    for (const alarm of Object.values(alarms)) expect(alarm!['AlarmActions']).toHaveLength(1);
    expect(one('AWS::SNS::Subscription').Condition).toBe('HasAlarmEmail');
  });

  it('is understood by the tool that deploys it', async () => {
    const tool = path.join(FOLDER, 'node_modules/.bin/cdk');
    const out = path.join(folder, 'out');
    await promisify(execFile)(
      tool,
      ['synth', '--quiet', '--app', `${process.execPath} cdk/cdk-app.ts`, '--output', out, '-c', `bundles=${folder}`],
      { cwd: FOLDER },
    );
    const written = JSON.parse(await readFile(path.join(out, 'Skua.template.json'), 'utf8')) as typeof template;
    expect(Object.keys(written.Parameters)).toEqual(expect.arrayContaining(Object.keys(template.Parameters)));
  });

  it('has parameters with defaults', () => {
    const {
      Prefix,
      FunctionMemory,
      TickMemory,
      AlarmEmail,
      BackupBucket,
      BackupPrefix,
      BackupKeyName,
      BackupEverySeconds,
    } = template.Parameters;
    expect([BackupBucket.Default, BackupPrefix.Default, BackupKeyName.Default, BackupEverySeconds.Default]).toEqual([
      '',
      'skua-backups',
      '',
      3_600,
    ]);
    expect(Prefix).toMatchObject({ Default: 'skua', AllowedPattern: expect.stringMatching(/^\^.*\$$/) });
    expect([FunctionMemory.Default, TickMemory.Default, AlarmEmail.Default]).toEqual([1_024, 1_769, '']);
  });
});
