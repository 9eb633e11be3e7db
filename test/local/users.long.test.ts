import { pbkdf2Sync, randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { installFolder, unpackSet } from '../support/fixtures.ts';
import { ran, startedNode } from './spawn.ts';
import type { Started } from './spawn.ts';
import { runBy } from './run.ts';
import { FakeIo } from './support.ts';

let folder: string;
let node: Started | null = null;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'skua-users-'));
});
afterEach(async () => {
  await node?.stop();
  node = null;
  rmSync(folder, { recursive: true });
});

const db = () => path.join(folder, 'data');
const start = async (...words: string[]) => {
  node = await startedNode(['--disable-tls', '--db', db(), ...words]);
};
/** With passwords that are derived in a moment, where nothing depends on their format. */
const startQuick = (...words: string[]) => start('--password-format', 'compatible', ...words);
const stop = async () => {
  await node!.stop();
  node = null;
};
const basic = (name: string, password: string) => ({
  authorization: `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}`,
});
const ADMIN = basic('admin', 'changeit');

/** The status and the body of an answer; headers as given, also `Host`. */
function ask(
  method: string,
  target: string,
  headers: Record<string, string>,
  body?: unknown,
): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const asked = request(
      node!.url + target,
      { method, headers: { ...headers, ...(body !== undefined && { 'content-type': 'application/json' }) } },
      (answer) => {
        let text = '';
        answer
          .setEncoding('utf8')
          .on('data', (part: string) => {
            text += part;
          })
          .on('end', () => resolve({ status: answer.statusCode!, text }));
      },
    );
    asked.on('error', reject).end(body === undefined ? undefined : JSON.stringify(body));
  });
}

const statusOf = async (...asked: Parameters<typeof ask>) => (await ask(...asked)).status;

/** As the reference database stores an empty password. */
async function leaveEmptyPassword(loginName: string, groups: readonly string[]): Promise<void> {
  const salt = Buffer.alloc(16, 7);
  const hash = pbkdf2Sync('', salt, 1_000, 20, 'sha1').toString('base64');
  const status = await statusOf(
    'POST',
    `/streams/%24user-${loginName}`,
    { ...ADMIN, 'es-eventtype': '$UserUpdated', 'es-eventid': randomUUID() },
    { loginName, salt: salt.toString('base64'), hash, groups },
  );
  expect(status).toBe(201);
}

/** `skua ...` in this process. `typed` is what comes from standard input, a terminal where `isTTY`. */
function run(
  words: string[],
  { env = {}, typed = '', isTTY = false }: { env?: Record<string, string>; typed?: string; isTTY?: boolean } = {},
) {
  const io = new FakeIo({ env });
  const stdin = Object.assign(new PassThrough(), { isTTY });
  stdin.end(typed);
  return runBy(Object.assign(io, { stdin }), words);
}

describe('an empty password', () => {
  test('is given to nobody, and lets in whoever has one on this machine only', async () => {
    await startQuick();
    const kim = { loginName: 'kim', fullName: null, groups: [] };
    for (const password of ['', '  ', '\0'])
      expect(await ask('POST', '/users', ADMIN, { ...kim, password })).toEqual({
        status: 400,
        text: expect.stringContaining('"invalid_user"'),
      });
    expect(await statusOf('POST', '/users', ADMIN, { ...kim, password: 'secret' })).toBe(201);
    expect(await statusOf('PUT', '/users/kim', ADMIN, { fullName: 'Kim', password: '' })).toBe(400);
    expect(await statusOf('POST', '/users/kim/command/reset-password', ADMIN, { newPassword: '' })).toBe(400);
    expect(
      await statusOf('POST', '/users/kim/command/change-password', basic('kim', 'secret'), {
        currentPassword: 'secret',
        newPassword: '',
      }),
    ).toBe(400);
    expect(await statusOf('GET', '/users/%24current', basic('kim', 'secret'))).toBe(200);

    await leaveEmptyPassword('kim', []);
    const me = (headers: Record<string, string>, password = '') =>
      ask('GET', '/users/%24current', { ...basic('kim', password), ...headers });
    expect((await me({})).status).toBe(200);
    for (const headers of [
      { 'x-forwarded-for': '203.0.113.9' },
      { 'x-forwarded-for': '127.0.0.1' },
      { forwarded: 'for=127.0.0.1' },
      { via: '1.1 proxy' },
      { host: 'events.example.test' },
    ] as Record<string, string>[]) {
      for (const password of ['', '\0', '\0\0'])
        expect(await me(headers, password)).toEqual({
          status: 401,
          text: expect.stringMatching(
            /not_authenticated.*An empty password is accepted only on the machine of the node itself.*reset-password/,
          ),
        });
    }
    expect(await ask('GET', '/users/%24current', { ...basic('nobody', ''), via: '1.1 proxy' })).toEqual(
      await me({ via: '1.1 proxy' }),
    );
    expect((await me({})).status).toBe(200);
    expect(
      await statusOf('POST', '/users/kim/command/change-password', basic('kim', ''), {
        currentPassword: '',
        newPassword: 'n3w',
      }),
    ).toBe(200);
    expect(await statusOf('GET', '/users/%24current', { ...basic('kim', 'n3w'), via: '1.1 proxy' })).toBe(200);
  });

  test('counts where the proxy on this machine says that the client is', async () => {
    await startQuick('--trusted-proxies', '127.0.0.1');
    await leaveEmptyPassword('kim', []);
    const me = (headers: Record<string, string>) =>
      statusOf('GET', '/users/%24current', { ...basic('kim', ''), ...headers });
    expect(await me({ 'x-forwarded-for': '127.0.0.1' })).toBe(200);
    expect(await me({ 'x-forwarded-for': '203.0.113.9' })).toBe(401);
    expect(await me({ 'x-forwarded-for': '203.0.113.9', forwarded: 'for=127.0.0.1' })).toBe(401);
    expect(await me({})).toBe(401);
  });

  test('of a default user keeps the node on this machine, as the documented one does', async () => {
    await startQuick();
    expect(await statusOf('POST', '/users/ops/command/reset-password', ADMIN, { newPassword: 'better' })).toBe(200);
    await leaveEmptyPassword('admin', ['$admins']);
    await stop();
    const refused = await ran([
      'start',
      '--disable-tls',
      '--db',
      db(),
      '--node-ip',
      '0.0.0.0',
      '--node-port',
      '0',
      '--stream-existence-filter-size',
      '10000',
    ]);
    expect(refused).toMatchObject({
      code: 2,
      err: expect.stringMatching(/still has the default password or an empty one/),
    });
  });

  test('keeps a node from starting where a variable says so', async () => {
    for (const name of ['SERVER_DEFAULT_ADMIN_PASSWORD', 'SERVER_DEFAULT_OPS_PASSWORD']) {
      expect(
        await ran(['start', '--disable-tls', '--db', db(), '--node-ip', '0.0.0.0', '--node-port', '0'], { [name]: '' }),
      ).toEqual({ code: 2, out: '', err: expect.stringContaining(`${name} must be a password, and it is empty`) });
    }
  });
});

describe('the format of passwords', () => {
  test('of a directory of the reference database is told at the start, unless somebody has decided', async () => {
    installFolder(db(), unpackSet('orders-1-before'));
    const told = () =>
      node!.process
        .logged()
        .filter(({ msg }) => String(msg).includes("which it can't read. Set PasswordFormat: compatible"));
    await start();
    expect(told()).toMatchObject([{ level: 'warn' }]);
    await stop();
    for (const format of ['strong', 'compatible']) {
      await start('--password-format', format);
      expect(told()).toEqual([]);
      await stop();
    }
  });

  test('is shown to administrators only, and changes with a login where it is to be compatible', async () => {
    await start('--password-format', 'compatible');
    await stop();
    await start();
    expect(
      await statusOf('POST', '/users', ADMIN, {
        loginName: 'kim',
        fullName: 'K\u0007im',
        groups: ['pickers'],
        password: 'secret',
      }),
    ).toBe(201);
    expect((await ask('GET', '/users', ADMIN)).text).not.toContain('passwordFormat');
    expect((await ask('GET', '/users/kim?passwordFormats=true', basic('kim', 'secret'))).text).not.toContain(
      'passwordFormat',
    );
    expect(await statusOf('GET', '/users?passwordFormats=true', basic('kim', 'secret'))).toBe(403);
    expect(await statusOf('GET', '/users?passwordFormats=maybe', ADMIN)).toBe(400);
    const env = { SKUA_NODE: node!.url, SKUA_USER: 'admin', SKUA_PASSWORD: 'changeit' };
    const { code, out } = await run(['user', 'list'], { env });
    expect(code).toBe(0);
    expect(out).toMatch(/^admin .* \$admins .* yes +compatible$/m);
    expect(out).toMatch(/^kim +K\\u0007im +pickers +yes +strong$/m);
    expect(out).toContain('3 users. strong: scrypt, which EventStoreDB does not read.');
    const listed = JSON.parse((await run(['user', 'list', '--json'], { env })).out) as { users: object[] };
    expect(listed.users).toContainEqual({
      loginName: 'kim',
      fullName: 'K\u0007im',
      groups: ['pickers'],
      disabled: false,
      passwordFormat: 'strong',
    });
    expect(await run(['user', 'list'], { env: { ...env, SKUA_USER: 'kim', SKUA_PASSWORD: 'secret' } })).toMatchObject({
      code: 4,
      out: '',
      err: expect.stringContaining('access_denied'),
    });
    expect(await run(['user', 'list', '--db', db()], { env })).toMatchObject({
      code: 3,
      err: expect.stringMatching(/directory_locked.*leave out --db/),
    });
    expect((await run(['user', 'list', '--db', db(), '--node', node!.url])).code).toBe(2);
    await stop();

    const offline = await run(['user', 'list', '--db', db(), '--json']);
    expect(JSON.parse(offline.out)).toEqual(listed);
    // Nothing of the node's is made anew with another size, such as its existence filter.
    expect(offline.err).toBe('');
    await start('--password-format', 'compatible');
    expect(await statusOf('GET', '/users/%24current', basic('kim', 'secret'))).toBe(200);
    await stop();
    expect((await run(['user', 'list', '--db', db()])).out).toMatch(/^kim .* compatible$/m);
  });
});

describe('skua user reset-password', () => {
  const reset = (words: string[], more: Parameters<typeof run>[1] = {}) =>
    run(['user', 'reset-password', ...words, '--db', db()], more);
  beforeEach(async () => {
    await startQuick();
    expect(
      await statusOf('POST', '/users', ADMIN, { loginName: 'kim', fullName: 'Kim', groups: [], password: 'secret' }),
    ).toBe(201);
    await stop();
  });
  const lets = async (name: string, password: string) =>
    (await statusOf('GET', '/users/%24current', basic(name, password))) === 200;

  test('takes a password from standard input, a file, or as it is typed, and never shows it', async () => {
    writeFileSync(path.join(folder, 'secret'), 'fr0m-file\r\n');
    expect(await reset(['admin'], { typed: 'p1ped\n' })).toEqual({
      code: 0,
      out: 'admin has the new password (compatible), groups $admins. Start the node and log in with it.\n',
      err: expect.not.stringContaining('p1ped'),
    });
    expect(
      await reset(['ops', '--password-file', path.join(folder, 'secret'), '--password-format', 'strong']),
    ).toMatchObject({ code: 0, out: expect.stringContaining('(strong)') });
    const typed = await reset(['kim', '--json'], { typed: 'typ3d\rtyp3d\r', isTTY: true });
    expect(JSON.parse(typed.out)).toEqual({
      loginName: 'kim',
      fullName: 'Kim',
      groups: [],
      disabled: false,
      passwordFormat: 'compatible',
    });
    expect(typed.err).toContain('New password of kim: \nRepeat it: \n');
    expect(typed.err + typed.out).not.toContain('typ3d');
    await startQuick();
    expect(
      await Promise.all([
        lets('admin', 'p1ped'),
        lets('ops', 'fr0m-file'),
        lets('kim', 'typ3d'),
        lets('admin', 'changeit'),
        lets('kim', 'secret'),
      ]),
    ).toEqual([true, true, true, false, false]);
    const events = await ask('GET', '/streams/%24user-kim/1', {
      ...basic('admin', 'p1ped'),
      accept: 'application/vnd.eventstore.atom+json',
    });
    expect(events.text).toContain('"eventType": "$UserUpdated"');
    expect((await ask('GET', '/streams/%24users-password-notifications/0', basic('admin', 'p1ped'))).text).toContain(
      '"loginName": "admin"',
    );
  });

  test('changes nothing otherwise', async () => {
    const before = (await run(['user', 'list', '--db', db(), '--json'])).out;
    expect(await reset(['kim'], { typed: ' \n' })).toMatchObject({ code: 4 });
    expect(await reset(['nobody'], { typed: 'x' })).toMatchObject({
      code: 1,
      err: expect.stringMatching(/user_not_found.*skua user list --db .*--administrator/),
    });
    expect(await run(['user', 'reset-password', 'kim'], { typed: 'x' })).toMatchObject({
      code: 2,
      err: expect.stringContaining('--db DIR is missing'),
    });
    expect(
      await run(['user', 'reset-password', 'kim', '--db', path.join(folder, 'absent')], { typed: 'x' }),
    ).toMatchObject({ code: 3, err: expect.stringContaining('not_a_directory') });
    expect((await run(['user', 'list', '--db', db(), '--json'])).out).toBe(before);
    await startQuick();
    expect(await reset(['kim'], { typed: 'x' })).toMatchObject({
      code: 3,
      err: expect.stringMatching(/directory_locked.*an administrator sends POST/),
    });
    expect(await lets('kim', 'secret')).toBe(true);
  });

  test('makes a way in where no administrator is left', async () => {
    // As another program may leave it: here the last one stays.
    await startQuick();
    expect((await ask('DELETE', '/users/admin', ADMIN)).text).toContain('"last_administrator"');
    expect(await statusOf('POST', '/users/kim/command/disable', ADMIN)).toBe(200);
    expect(await statusOf('DELETE', '/streams/%24user-admin', ADMIN)).toBe(204);
    await stop();
    expect(await reset(['kim', '--administrator', '--enable'], { typed: 'n3w' })).toMatchObject({
      code: 0,
      out: 'kim has the new password (compatible), groups $admins. Start the node and log in with it.\n',
    });
    expect(await reset(['admin', '--administrator'], { typed: 'back' })).toMatchObject({ code: 0 });
    await startQuick();
    expect(
      await Promise.all([
        statusOf('GET', '/users', basic('kim', 'n3w')),
        statusOf('GET', '/users', basic('admin', 'back')),
      ]),
    ).toEqual([200, 200]);
  });
});
