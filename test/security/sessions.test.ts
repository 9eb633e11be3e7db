import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { decodeBase64Url, encodeBase64Url } from '../../core/base64.ts';
import type { Security, Sessions } from '../../core/security/api.ts';
import type { Principal } from '../../core/security/principal.ts';
import { SealedSecrets } from '../../core/security/sealed-secrets.ts';
import { createSecurity } from '../../core/security/security.ts';
import { KEY_SIGNS_MS, SESSION_KEYS_STREAM, SESSION_MS } from '../../core/security/session-keys.ts';
import { VERIFIED_MAX } from '../../core/security/sessions.ts';
import { silentMeter } from '../../core/ports/meter.ts';
import { ANY } from '../../core/streams/api.ts';
import { encodeText } from '../../core/text.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { CONFIG, contentOf, FakeKeys, openWorld } from './kit.ts';
import type { World } from './kit.ts';

let world: World;
/** Two members that share what sessions are sealed under, and one that does not. */
let one: Node;
let two: Node;
let stranger: Node;

interface Node extends Security {
  readonly sessions: Sessions;
  login(name?: string, password?: string): Promise<string>;
}

beforeEach(async () => {
  world = await openWorld();
  await world.security.users.create({ loginName: 'kim', fullName: null, groups: ['pickers'], password: 'kim-pass' });
  await world.security.users.create({ loginName: 'second', fullName: null, groups: ['$admins'], password: 'x' });
  one = await member('shared', 1);
  two = await member('shared', 2);
  stranger = await member('other', 3);
});
afterEach(() => world.close());

async function member(token: string, seed: number): Promise<Node> {
  const keys = new FakeKeys();
  // Members draw other bytes each.
  keys.randomBytes(seed);
  const security = createSecurity({
    store: world.store, keys, clock: world.clock, ids: new SeededIds(seed), log: world.log, meter: silentMeter, sessions: { secrets: async () => new SealedSecrets(keys, [token]) },
  }, CONFIG);
  await security.start();
  const sessions = security.sessions!;
  return { ...security, sessions, login: async (name = 'kim', password = 'kim-pass') => (await sessions.begin(await security.authenticator.login(name, password, null))).value };
}

async function userOf({ sessions }: Node, value: string): Promise<Principal | null> {
  return (await sessions.find(value))?.principal ?? null;
}

const KIM: Principal = { name: 'kim', roles: ['pickers'] };

/** Keys and ends that the stream has shown. */
async function written(): Promise<string[]> {
  return (await contentOf(world.store, SESSION_KEYS_STREAM)).map((line) => line.split(' ')[0]!);
}

describe('a session', () => {
  test('stands for its user for twelve hours, here, at another member, and after a restart', async () => {
    const value = await one.login();
    expect(value).toMatch(/^1\.[\w-]+\.[\w-]{43}$/);
    expect(await one.sessions.find(value)).toMatchObject({ principal: KIM, endsMs: world.clock.nowMs() + SESSION_MS });
    const restarted = await member('shared', 9);
    await world.clock.advance(SESSION_MS - 1);
    for (const node of [one, two, restarted]) expect(await userOf(node, value)).toEqual(KIM);
    await world.clock.advance(1);
    for (const node of [one, two, restarted, await member('shared', 10)]) expect(await userOf(node, value)).toBeNull();
  });

  test('is known at once when it comes again', async () => {
    const value = await one.login();
    await userOf(one, value);
    const again = one.sessions.find(value);
    expect(again).toMatchObject({ principal: KIM });
    expect(await one.sessions.find(value)).toBe(again);
  });

  test('with any other character is none', async () => {
    const value = await one.login();
    const other = (character: string) => (character === 'A' ? 'B' : 'A');
    for (let i = 0; i < value.length; i++) expect(await userOf(one, value.slice(0, i) + other(value[i]!) + value.slice(i + 1)), `character ${i}`).toBeNull();
    for (const forged of ['', '1', '1..', '1.e30.', `${value}.`, value.slice(0, -1), `${value}A`, 'x'.repeat(10_000), value.replace('1.', '2.')]) expect(await userOf(one, forged)).toBeNull();
    expect(await userOf(one, value)).toEqual(KIM);
  });

  test('can be given to nobody else, nor be made longer, without the key', async () => {
    const value = await one.login();
    const [version, claims, signature] = value.split('.');
    const list = JSON.parse(new TextDecoder().decode(decodeBase64Url(claims!)!)) as unknown[];
    const with_ = (i: number, changed: unknown) => `${version}.${encodeBase64Url(encodeText(JSON.stringify(list.with(i, changed))))}.${signature}`;
    for (const forged of [with_(2, 'admin'), with_(4, Number(list[4]) + 1), with_(1, 'other'), with_(0, 'other')]) expect(await userOf(one, forged)).toBeNull();
  });

  test('of a user who is another by then is not begun', async () => {
    const principal = await one.authenticator.login('kim', 'kim-pass', null);
    await one.users.disable('kim');
    await expect(one.sessions.begin(principal)).rejects.toMatchObject({ code: 'not_authenticated' });
    await one.users.enable('kim');
    await expect(one.sessions.begin(principal)).rejects.toMatchObject({ code: 'not_authenticated' });
  });

  test('more than are remembered count all the same', async () => {
    const first = await one.login();
    const principal = await one.authenticator.login('kim', 'kim-pass', null);
    for (let i = 0; i < VERIFIED_MAX; i++) await one.sessions.begin(principal);
    expect(await userOf(one, first)).toEqual(KIM);
  });
});

describe('a change of the user ends it at once, everywhere', () => {
  test.each<[string, (node: Node) => Promise<void>]>([
    ['a password', (node) => node.users.resetPassword('kim', 'new-pass')], ['groups', (node) => node.users.update('kim', { groups: ['$ops'] })], ['a full name', (node) => node.users.update('kim', { fullName: 'Kim' })],
    ['disabled', (node) => node.users.disable('kim')], ['deleted', (node) => node.users.delete('kim')],
  ])('%s', async (_, change) => {
    const value = await one.login();
    const session = (await one.sessions.find(value))!;
    expect([await userOf(two, value), await one.authenticator.hasChanged!(session.principal)]).toEqual([KIM, false]);
    await change(two);
    for (const node of [one, two]) expect(await userOf(node, value)).toBeNull();
    expect([await one.authenticator.hasChanged!(session.principal), await one.sessions.resume(session.proof)]).toEqual([true, null]);
  });

  /** Whether a session counts in another store, as after a restore, where the stream of its user has this record. */
  async function countsElsewhere(value: string, record: string): Promise<boolean> {
    const restored = await openWorld();
    const write = (stream: string, type: string, data: string) => restored.store.append(stream, ANY, [{ id: crypto.randomUUID(), type, isJson: true, data: encodeText(data), metadata: new Uint8Array(0) }]);
    await write('$$$user-kim', '$metadata', '{}');
    await write('$user-kim', '$UserCreated', record);
    for (const line of await contentOf(world.store, SESSION_KEYS_STREAM)) await write(SESSION_KEYS_STREAM, line.slice(0, line.indexOf(' ')), line.slice(line.indexOf(' ') + 1));
    const keys = new FakeKeys();
    const { sessions } = createSecurity({ store: restored.store, keys, clock: world.clock, ids: new SeededIds(4), log: world.log, meter: silentMeter, sessions: { secrets: async () => new SealedSecrets(keys, ['shared']) } }, CONFIG);
    const found = await sessions!.find(value);
    await restored.close();
    return found !== null;
  }

  test('a record that is another one at the same number is not the user who logged in', async () => {
    const value = await one.login();
    const [line] = await contentOf(world.store, '$user-kim');
    const record = JSON.parse(line!.slice(line!.indexOf(' ') + 1)) as Record<string, unknown>;
    expect(await countsElsewhere(value, JSON.stringify(record))).toBe(true);
    for (const other of [{ ...record, hash: 'b3RoZXI=' }, { ...record, salt: 'b3RoZXI=' }, { ...record, groups: ['$admins'] }, { ...record, disabled: true }]) expect(await countsElsewhere(value, JSON.stringify(other))).toBe(false);
  });

  test('changes of others end nothing', async () => {
    const value = await one.login();
    await two.users.resetPassword('second', 'y');
    for (const node of [one, two]) expect(await userOf(node, value)).toEqual(KIM);
  });
});

describe('logging out', () => {
  test('ends this session, at all members and after a restart, and no other one', async () => {
    const [value, other] = [await one.login(), await one.login()];
    const { principal } = (await one.sessions.find(value))!;
    expect(await userOf(two, value)).toEqual(KIM);
    expect(await one.sessions.end(value)).toBe(true);
    for (const node of [one, two, await member('shared', 9)]) expect([await userOf(node, value), await userOf(node, other)]).toEqual([null, KIM]);
    expect([await one.authenticator.hasChanged!(principal), await one.sessions.end(value), await one.sessions.end('1.x.y')]).toEqual([true, false, false]);
    expect(await written()).toEqual(['$ui-session-key', '$ui-session-ended']);
  });

  test('with the stream taken away nobody is logged in any more', async () => {
    const value = await one.login();
    await world.store.deleteStream(SESSION_KEYS_STREAM, ANY, 'soft');
    for (const node of [one, two]) expect(await userOf(node, value)).toBeNull();
    const later = await two.login();
    expect(await userOf(one, later)).toEqual(KIM);
    expect(await userOf(one, value)).toBeNull();
  });
});

describe('keys', () => {
  test('are made by the first login, not by a start, a question or a value that is none', async () => {
    await userOf(one, '1.e30.AA');
    expect((await world.store.streamInfo(SESSION_KEYS_STREAM)).lastEventNumber).toBe(-1);
    await one.login();
    const { metadata } = await world.store.streamInfo(SESSION_KEYS_STREAM);
    expect([await written(), metadata]).toEqual([['$ui-session-key'], { maxAge: 172_800, maxCount: 100_000, acl: { read: [], write: [], delete: [], metadataRead: [], metadataWrite: [] } }]);
  });

  test('are one, also where members make one at the same time', async () => {
    const values = await Promise.all([one.login(), two.login(), one.login('second', 'x'), two.login('second', 'x')]);
    expect((await written()).filter((type) => type === '$ui-session-key')).toHaveLength(1);
    for (const value of values) for (const node of [one, two]) expect(await userOf(node, value)).not.toBeNull();
  });

  test('change every day, and the one before counts as long as what it has signed', async () => {
    await one.login();
    await world.clock.advance(KEY_SIGNS_MS - 1);
    const last = await one.login();
    await world.clock.advance(1);
    const first = await two.login();
    expect(await written()).toEqual(['$ui-session-key', '$ui-session-key']);
    await world.clock.advance(SESSION_MS - 2);
    for (const node of [one, two, await member('shared', 9)]) expect([await userOf(node, last), await userOf(node, first)]).toEqual([KIM, KIM]);
  });

  test('stand in the stream sealed: nothing of it opens without the token', async () => {
    const value = await one.login();
    const content = await contentOf(world.store, SESSION_KEYS_STREAM);
    expect(content[0]).toMatch(/^\$ui-session-key \{"keyId":"[\w-]{12}","madeMs":\d+,"sealed":"skua-sealed:1:[0-9a-f]{16}:[\w+/=]+"\}$/);
    expect([await userOf(stranger, value), world.log.at('warn').filter((line) => line.includes('can not be opened'))]).toEqual([null, [expect.any(String)]]);
  });

  test('that can not be opened are skipped with one warning, and another one is made beside them', async () => {
    const value = await one.login();
    const [strange, again] = [await stranger.login(), await stranger.login()];
    expect([await userOf(stranger, strange), await userOf(stranger, again), await userOf(stranger, value), await userOf(one, strange), await userOf(one, value)]).toEqual([KIM, KIM, null, null, KIM]);
    expect(await written()).toEqual(['$ui-session-key', '$ui-session-key']);
    // Both members have met a key of the other.
    expect(world.log.at('warn').filter((line) => line.includes('can not be opened'))).toHaveLength(2);
  });

  test('that somebody else has written, or moved, let nobody in', async () => {
    const value = await one.login();
    const [line] = await contentOf(world.store, SESSION_KEYS_STREAM);
    const key = JSON.parse(line!.slice(line!.indexOf(' ') + 1)) as Record<string, unknown>;
    const before = await userOf(two, value);
    for (const data of [{ ...key, keyId: 'other' }, { ...key, madeMs: Number(key['madeMs']) + 1 }, { ...key, sealed: 'AAAA' }, {}, 'text', null]) {
      await world.store.append(SESSION_KEYS_STREAM, ANY, [{ id: crypto.randomUUID(), type: '$ui-session-key', isJson: true, data: encodeText(JSON.stringify(data)), metadata: new Uint8Array(0) }]);
    }
    expect([before, await userOf(two, value), await userOf(await member('shared', 9), value)]).toEqual([KIM, KIM, KIM]);
    expect(await written()).toHaveLength(7);
  });
});

test('a session that another member has verified is resumed as the user is now', async () => {
  const session = (await one.sessions.find(await one.login()))!;
  expect(await two.sessions.resume(session.proof)).toEqual(KIM);
  expect(await two.sessions.resume({ ...session.proof, lastEventNumber: session.proof.lastEventNumber + 1 })).toBeNull();
  expect(await two.sessions.resume({ ...session.proof, user: 'nobody' })).toBeNull();
  expect(await two.sessions.resume({ ...session.proof, user: '\u0000' })).toBeNull();
});
