import { describe, expect, it } from 'vitest';
import { readSettings } from '../../infra/aws/functions/function-settings.ts';

const base = {
  SERVER_STORAGE: 's3://bucket/some/prefix',
  SERVER_DEFAULT_ADMIN_PASSWORD: 'a',
  SERVER_DEFAULT_OPS_PASSWORD: 'b',
};

describe('the settings of functions', () => {
  it('are the options of a node by the same names', () => {
    const { values, place, warnings } = readSettings({
      ...base,
      SERVER_AUTO_SCAVENGE__TIME_ZONE: 'Europe/Oslo',
      SERVER_WEBHOOK__MAX_BODY_SIZE: '2048',
      SERVER_CONNECTORS__DATA_PROTECTION__TOKEN: 't',
      PATH: '/bin',
    });
    expect(values).toMatchObject({
      'AutoScavenge:TimeZone': 'Europe/Oslo',
      'Webhook:MaxBodySize': 2048,
      'Connectors:DataProtection:Token': 't',
      DefaultAdminPassword: 'a',
      'Licensing:UseBuiltIn': true,
    });
    expect(place).toMatchObject({ kind: 's3', bucket: 'bucket', prefix: 'some/prefix' });
    expect(warnings).toEqual([]);
  });

  it('may be a directory where functions are developed', () => {
    expect(readSettings({ ...base, SERVER_STORAGE: '/tmp/data' }).place).toEqual({
      kind: 'directory',
      path: '/tmp/data',
    });
  });

  it.each([
    [{ ...base, SERVER_STORAGE: undefined }, 'SERVER_STORAGE is missing'],
    [{ ...base, SERVER_STORAGE: 'ftp://host/x' }, 'ftp'],
    [
      { ...base, SERVER_DEFAULT_ADMIN_PASSWORD: '' },
      'SERVER_DEFAULT_ADMIN_PASSWORD must be a password, and it is empty',
    ],
    [
      { SERVER_STORAGE: base.SERVER_STORAGE, SERVER_ALLOW_DEFAULT_PASSWORDS: 'true', SERVER_DEFAULT_OPS_PASSWORD: ' ' },
      'SERVER_DEFAULT_OPS_PASSWORD must be a password, and it is empty',
    ],
    [{ ...base, SERVER_TICK_SECONDS: 'soon' }, 'SERVER_TICK_SECONDS must be'],
    [
      { SERVER_STORAGE: base.SERVER_STORAGE },
      'SERVER_DEFAULT_ADMIN_PASSWORD and SERVER_DEFAULT_OPS_PASSWORD (or the same with _SECRET) must be set',
    ],
    [
      { ...base, SERVER_DEFAULT_OPS_PASSWORD: 'changeit' },
      'SERVER_DEFAULT_OPS_PASSWORD (or the same with _SECRET) must be set',
    ],
  ])('are refused with what to change (%#)', (env, expected) => {
    expect(() => readSettings(env)).toThrowError(expected);
  });

  it('allow the default passwords only where that is said', () => {
    expect(
      readSettings({ SERVER_STORAGE: 'data', SERVER_ALLOW_DEFAULT_PASSWORDS: 'true' }).values.DefaultAdminPassword,
    ).toBe('changeit');
    expect(readSettings({ SERVER_STORAGE: 'data', SERVER_INSECURE: 'true' }).values.Insecure).toBe(true);
  });

  it('say where ticks keep backups, how often, and under which key', () => {
    expect(readSettings(base).backup).toBe(null);
    expect(readSettings({ ...base, SERVER_BACKUP__REPOSITORY: 's3://other/backups' }).backup).toEqual({
      place: { kind: 's3', bucket: 'other', prefix: 'backups', endpoint: null, region: null },
      key: null,
      compression: 'auto',
      everyMs: 3_600_000,
      keep: null,
      throttleBytesPerSecond: 0,
      parallel: 4,
    });
    const given = {
      ...base,
      SERVER_BACKUP__REPOSITORY: 's3://bucket/elsewhere',
      SERVER_BACKUP__EVERY_SEC: '600',
      SERVER_BACKUP__KEEP_LAST: '5',
      SERVER_BACKUP__S3_REGION: 'eu-north-1',
    };
    const key = Uint8Array.from({ length: 32 }, (_, i) => 7 * i);
    for (const text of [`${Buffer.from(key).toString('hex')}\n`, Buffer.from(key).toString('base64')]) {
      expect(readSettings({ ...given, SERVER_BACKUP__KEY: text }).backup).toMatchObject({
        place: { region: 'eu-north-1' },
        everyMs: 600_000,
        keep: { last: 5, hourly: 0 },
        key,
      });
    }
  });

  it.each([
    [{ SERVER_BACKUP__REPOSITORY: 's3://bucket/some/prefix' }, 'are inside each other'],
    [{ SERVER_BACKUP__REPOSITORY: 's3://bucket/some/prefix/backups' }, 'are inside each other'],
    [{ SERVER_BACKUP__REPOSITORY: 's3://bucket' }, 'are inside each other'],
    [{ SERVER_STORAGE: '/data/store', SERVER_BACKUP__REPOSITORY: '/data/store/backups' }, 'are inside each other'],
    [{ SERVER_BACKUP__REPOSITORY: 's3://b' }, 'not a bucket name'],
    [
      { SERVER_BACKUP__REPOSITORY: 's3://other', SERVER_BACKUP__KEY: 'c2hvcnQ=' },
      /^(?!.*c2hvcnQ=).*SERVER_BACKUP__KEY is not a repository key/,
    ],
    [{ SERVER_BACKUP__REPOSITORY: 's3://other', SERVER_BACKUP__EVERY_SEC: '1' }, 'SERVER_BACKUP__EVERY_SEC must be'],
  ])("refuse backups that would be lost with the data, or can't be made (%#)", (env, expected) => {
    expect(() => readSettings({ ...base, ...env })).toThrowError(expected);
  });

  it('take a prefix that only begins like that of the data for another one', () => {
    expect(readSettings({ ...base, SERVER_BACKUP__REPOSITORY: 's3://bucket/some/prefix-backups' }).backup).not.toBe(
      null,
    );
  });

  it('warn of names that they do not know, for the functions of a deployment share a list', () => {
    expect(readSettings({ ...base, SERVER_NODE_PORT: '1' }).warnings).toEqual([
      expect.stringContaining('SERVER_NODE_PORT'),
    ]);
  });
});
