import { describe, expect, it } from 'vitest';
import { readSettings } from '../../infra/aws/functions/settings.ts';

const base = { SERVER_STORAGE: 's3://bucket/some/prefix', SERVER_DEFAULT_ADMIN_PASSWORD: 'a', SERVER_DEFAULT_OPS_PASSWORD: 'b' };

describe('the settings of functions', () => {
  it('are the options of a node by the same names', () => {
    const { values, place, warnings } = readSettings({ ...base, SERVER_AUTO_SCAVENGE__TIME_ZONE: 'Europe/Oslo', SERVER_WEBHOOK__MAX_BODY_SIZE: '2048', SERVER_CONNECTORS__DATA_PROTECTION__TOKEN: 't', PATH: '/bin' });
    expect(values).toMatchObject({ 'AutoScavenge:TimeZone': 'Europe/Oslo', 'Webhook:MaxBodySize': 2048, 'Connectors:DataProtection:Token': 't', DefaultAdminPassword: 'a', 'Licensing:UseBuiltIn': true });
    expect(place).toMatchObject({ kind: 's3', bucket: 'bucket', prefix: 'some/prefix' });
    expect(warnings).toEqual([]);
  });

  it('may be a directory where functions are developed', () => {
    expect(readSettings({ ...base, SERVER_STORAGE: '/tmp/data' }).place).toEqual({ kind: 'directory', path: '/tmp/data' });
  });

  it.each([
    [{ ...base, SERVER_STORAGE: undefined }, 'SERVER_STORAGE is missing'],
    [{ ...base, SERVER_STORAGE: 'ftp://host/x' }, 'ftp'],
    [{ ...base, SERVER_TICK_SECONDS: 'soon' }, 'SERVER_TICK_SECONDS must be'],
    [{ SERVER_STORAGE: base.SERVER_STORAGE }, 'SERVER_DEFAULT_ADMIN_PASSWORD and SERVER_DEFAULT_OPS_PASSWORD must be set'],
    [{ ...base, SERVER_DEFAULT_OPS_PASSWORD: 'changeit' }, 'SERVER_DEFAULT_OPS_PASSWORD must be set'],
  ])('are refused with what to change (%#)', (env, expected) => {
    expect(() => readSettings(env)).toThrowError(expected);
  });

  it('allow the default passwords only where that is said', () => {
    expect(readSettings({ SERVER_STORAGE: 'data', SERVER_ALLOW_DEFAULT_PASSWORDS: 'true' }).values.DefaultAdminPassword).toBe('changeit');
    expect(readSettings({ SERVER_STORAGE: 'data', SERVER_INSECURE: 'true' }).values.Insecure).toBe(true);
  });

  it('warn of names that they do not know, for the functions of a deployment share a list', () => {
    expect(readSettings({ ...base, SERVER_NODE_PORT: '1' }).warnings).toEqual([expect.stringContaining('SERVER_NODE_PORT')]);
  });
});
