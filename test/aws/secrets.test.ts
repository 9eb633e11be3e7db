import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { readSecret } from '../../infra/aws/functions/function-secrets.ts';
import { backupKeyOf, firstPasswordOf, readSettings, secretOf } from '../../infra/aws/functions/function-settings.ts';
import { SecretStore } from '../support/lambda/secret-store.ts';

const KEY = 'ab'.repeat(32);
const base = { SERVER_STORAGE: 's3://bucket/some/prefix' };

let store: SecretStore;

beforeAll(async () => {
  store = await new SecretStore({
    admin: 'from the store',
    documented: 'changeit',
    empty: '',
    key: `${KEY}\n`,
    denied: { status: 400, name: 'AccessDeniedException' },
    broken: { status: 500, name: 'InternalServiceError' },
  }).listen();
});
afterAll(() => store.close());
beforeEach(() => {
  for (const [name, value] of Object.entries({
    AWS_ENDPOINT_URL_SECRETS_MANAGER: store.url,
    AWS_REGION: 'us-east-1',
    AWS_ACCESS_KEY_ID: 'test',
    AWS_SECRET_ACCESS_KEY: 'test',
  }))
    vi.stubEnv(name, value);
  store.asked.length = 0;
});
afterEach(() => {
  vi.unstubAllEnvs();
});

describe('secrets of functions', () => {
  it('are read from the store where it is named, and win over the text itself', async () => {
    const settings = readSettings({
      ...base,
      SERVER_DEFAULT_ADMIN_PASSWORD: 'given',
      SERVER_DEFAULT_ADMIN_PASSWORD_SECRET: 'admin',
      SERVER_DEFAULT_OPS_PASSWORD: 'given too',
    });
    expect(await firstPasswordOf(settings, 'DefaultAdminPassword')).toBe('from the store');
    expect(await firstPasswordOf(settings, 'DefaultOpsPassword')).toBe('given too');
    expect(store.asked).toEqual(['admin']);
    expect(await secretOf(settings, 'Connectors:DataProtection:Token')).toBe(null);
  });

  it('may be the key of backups', async () => {
    const env = { ...base, SERVER_BACKUP__REPOSITORY: 's3://other/backups', SERVER_BACKUP__KEY_SECRET: 'key' };
    expect(await backupKeyOf(readSettings(env, { hasUsers: false }))).toEqual(new Uint8Array(32).fill(0xab));
    expect(await backupKeyOf(readSettings({ ...base, SERVER_BACKUP__KEY_SECRET: 'key' }, { hasUsers: false }))).toBe(
      null,
    );
    await expect(
      backupKeyOf(readSettings({ ...env, SERVER_BACKUP__KEY_SECRET: 'admin' }, { hasUsers: false })),
    ).rejects.toThrow(/^(?!.*from the store).*not a repository key/);
  });

  it('are asked of no function that does not need them', () => {
    expect(() => readSettings(base)).toThrow('SERVER_DEFAULT_ADMIN_PASSWORD and SERVER_DEFAULT_OPS_PASSWORD');
    expect(() => readSettings(base, { hasUsers: false })).not.toThrow();
    expect(() =>
      readSettings({ ...base, SERVER_DEFAULT_ADMIN_PASSWORD_SECRET: 'a', SERVER_DEFAULT_OPS_PASSWORD_SECRET: 'b' }),
    ).not.toThrow();
  });

  it.each([
    ['nobody', 'there is no such secret'],
    ['denied', 'the role of the function may not read it'],
    ['empty', 'without a text value'],
  ])('say what an operator has to mend: %s', async (id, expected) => {
    await expect(readSecret(id, 'SERVER_DEFAULT_ADMIN_PASSWORD_SECRET')).rejects.toMatchObject({
      problems: [expect.stringMatching(new RegExp(`SERVER_DEFAULT_ADMIN_PASSWORD_SECRET.*${expected}`))],
    });
  });

  it('that can not be read for a moment are tried again, and then by the next call', async () => {
    await expect(readSecret('broken', 'SERVER_X')).rejects.toMatchObject({ code: 'storage_unreachable' });
    expect(store.asked).toEqual(['broken', 'broken', 'broken']);
  });

  it('are not the documented password', async () => {
    const settings = readSettings({
      ...base,
      SERVER_DEFAULT_ADMIN_PASSWORD_SECRET: 'documented',
      SERVER_DEFAULT_OPS_PASSWORD_SECRET: 'admin',
    });
    await expect(firstPasswordOf(settings, 'DefaultAdminPassword')).rejects.toThrow(
      'SERVER_DEFAULT_ADMIN_PASSWORD_SECRET',
    );
  });

  it('are not empty', async () => {
    const settings = readSettings({
      ...base,
      SERVER_DEFAULT_ADMIN_PASSWORD_SECRET: 'admin',
      SERVER_DEFAULT_OPS_PASSWORD_SECRET: 'blank',
    });
    for (const blank of ['', '\n', '  '])
      await expect(firstPasswordOf(settings, 'DefaultOpsPassword', async () => blank)).rejects.toMatchObject({
        problems: [expect.stringMatching(/SERVER_DEFAULT_OPS_PASSWORD_SECRET names an empty secret/)],
      });
  });
});
