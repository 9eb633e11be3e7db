import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { decodeBase64Url, encodeBase64Url } from '../../core/base/base64.ts';
import type { Security, Sessions } from '../../core/security/api.ts';
import type { Principal } from '../../core/base/principal.ts';
import { createSecurity } from '../../core/security/security.ts';
import { SESSION_ENDS_STREAM } from '../../core/security/session-ends.ts';
import { DAY_MS, SESSION_MS, SessionKeys } from '../../core/security/session-keys.ts';
import { VERIFIED_MAX } from '../../core/security/sessions.ts';
import { silentMeter } from '../../core/ports/meter.ts';
import { ANY } from '../../core/streams/api.ts';
import { encodeText } from '../../core/base/text.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { CONFIG, contentOf, FakeKeys, openWorld } from './kit.ts';
import type { World } from './kit.ts';

let world: World;
/** Two members that share what keys of sessions are made of, and one that does not. */
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

async function member(token: string, seed: number, ...previous: readonly string[]): Promise<Node> {
  const keys = new FakeKeys();
  // Members draw other bytes each.
  keys.randomBytes(seed);
  const security = createSecurity(
    {
      store: world.store,
      keys,
      clock: world.clock,
      ids: new SeededIds(seed),
      log: world.log,
      meter: silentMeter,
      sessions: { secrets: async () => [token, ...previous] },
    },
    CONFIG,
  );
  await security.start();
  const sessions = security.sessions!;
  return {
    ...security,
    sessions,
    login: async (name = 'kim', password = 'kim-pass') =>
      (await sessions.begin(await security.authenticator.login(name, password, null))).value,
  };
}

async function userOf({ sessions }: Node, value: string): Promise<Principal | null> {
  return (await sessions.find(value))?.principal ?? null;
}

const KIM: Principal = { name: 'kim', roles: ['pickers'] };

/** Types of what the stream shows. */
async function written(): Promise<string[]> {
  return (await contentOf(world.store, SESSION_ENDS_STREAM)).map((line) => line.split(' ')[0]!);
}

describe('a session', () => {
  test('stands for its user for twelve hours, here, at another member, and after a restart', async () => {
    const value = await one.login();
    expect(value).toMatch(/^2\.[\w-]+\.[\w-]{43}$/);
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
    for (let i = 0; i < value.length; i++)
      expect(await userOf(one, value.slice(0, i) + other(value[i]!) + value.slice(i + 1)), `character ${i}`).toBeNull();
    for (const forged of [
      '',
      '2',
      '2..',
      '2.e30.',
      `${value}.`,
      value.slice(0, -1),
      `${value}A`,
      'x'.repeat(10_000),
      value.replace('2.', '1.'),
    ])
      expect(await userOf(one, forged)).toBeNull();
    expect(await userOf(one, value)).toEqual(KIM);
  });

  test('can be given to nobody else, nor be made longer, without the key', async () => {
    const value = await one.login();
    const [version, claims, signature] = value.split('.');
    const list = JSON.parse(new TextDecoder().decode(decodeBase64Url(claims!)!)) as unknown[];
    const with_ = (i: number, changed: unknown) =>
      `${version}.${encodeBase64Url(encodeText(JSON.stringify(list.with(i, changed))))}.${signature}`;
    for (const forged of [with_(2, 'admin'), with_(4, Number(list[4]) + 1), with_(1, 'other'), with_(0, 'other')])
      expect(await userOf(one, forged)).toBeNull();
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
    ['a password', (node) => node.users.resetPassword('kim', 'new-pass')],
    ['groups', (node) => node.users.update('kim', { groups: ['$ops'] })],
    ['a full name', (node) => node.users.update('kim', { fullName: 'Kim' })],
    ['disabled', (node) => node.users.disable('kim')],
    ['deleted', (node) => node.users.delete('kim')],
  ])('%s', async (_, change) => {
    const value = await one.login();
    const session = (await one.sessions.find(value))!;
    expect([await userOf(two, value), await one.authenticator.hasChanged!(session.principal)]).toEqual([KIM, false]);
    await change(two);
    for (const node of [one, two]) expect(await userOf(node, value)).toBeNull();
    expect([await one.authenticator.hasChanged!(session.principal), await one.sessions.resume(session.proof)]).toEqual([
      true,
      null,
    ]);
  });

  /** Whether a session counts in another store, as after a restore, where the stream of its user has this record. */
  async function countsElsewhere(value: string, record: string): Promise<boolean> {
    const restored = await openWorld();
    const write = (stream: string, type: string, data: string) =>
      restored.store.append(stream, ANY, [
        { id: crypto.randomUUID(), type, isJson: true, data: encodeText(data), metadata: new Uint8Array(0) },
      ]);
    await write('$$$user-kim', '$metadata', '{}');
    await write('$user-kim', '$UserCreated', record);
    const keys = new FakeKeys();
    const { sessions } = createSecurity(
      {
        store: restored.store,
        keys,
        clock: world.clock,
        ids: new SeededIds(4),
        log: world.log,
        meter: silentMeter,
        sessions: { secrets: async () => ['shared'] },
      },
      CONFIG,
    );
    const found = await sessions!.find(value);
    await restored.close();
    return found !== null;
  }

  test('a record that is another one at the same number is not the user who logged in', async () => {
    const value = await one.login();
    const [line] = await contentOf(world.store, '$user-kim');
    const record = JSON.parse(line!.slice(line!.indexOf(' ') + 1)) as Record<string, unknown>;
    expect(await countsElsewhere(value, JSON.stringify(record))).toBe(true);
    for (const other of [
      { ...record, hash: 'b3RoZXI=' },
      { ...record, salt: 'b3RoZXI=' },
      { ...record, groups: ['$admins'] },
      { ...record, disabled: true },
    ])
      expect(await countsElsewhere(value, JSON.stringify(other))).toBe(false);
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
    for (const node of [one, two, await member('shared', 9)])
      expect([await userOf(node, value), await userOf(node, other)]).toEqual([null, KIM]);
    expect([
      await one.authenticator.hasChanged!(principal),
      await one.sessions.end(value),
      await one.sessions.end('2.x.y'),
    ]).toEqual([true, false, false]);
    expect(await written()).toEqual(['$ui-session-ended']);
    const { metadata } = await world.store.streamInfo(SESSION_ENDS_STREAM);
    expect(metadata).toEqual({
      maxCount: 100_000,
      acl: { read: [], write: [], delete: [], metadataRead: [], metadataWrite: [] },
    });
  });

  test('with the ends taken away nobody is logged in any more, and who logs in then is', async () => {
    const [value, ended] = [await one.login(), await one.login()];
    await one.sessions.end(ended);
    await world.store.deleteStream(SESSION_ENDS_STREAM, ANY, 'soft');
    for (const node of [one, two, await member('shared', 9)])
      expect([await userOf(node, value), await userOf(node, ended)]).toEqual([null, null]);
    await world.clock.advance(1);
    const later = await two.login();
    for (const node of [one, two, await member('shared', 10)])
      expect([await userOf(node, later), await userOf(node, value), await userOf(node, ended)]).toEqual([
        KIM,
        null,
        null,
      ]);
    await two.sessions.end(later);
    for (const node of [one, two]) expect(await userOf(node, later)).toBeNull();
  });

  test('with the stream taken away for ever nobody logs in', async () => {
    const [value, ended] = [await one.login(), await one.login()];
    await one.sessions.end(ended);
    await world.store.deleteStream(SESSION_ENDS_STREAM, ANY, 'hard');
    for (const node of [one, await member('shared', 9)]) expect(await userOf(node, value)).toBeNull();
    await expect(one.login()).rejects.toMatchObject({ code: 'stream_deleted' });
  });

  test('with the stream truncated beyond its end nobody is logged in, and who wants to is told why', async () => {
    const [value, ended] = [await one.login(), await one.login()];
    await one.sessions.end(ended);
    await world.store.append(`$$${SESSION_ENDS_STREAM}`, ANY, [
      {
        id: crypto.randomUUID(),
        type: '$metadata',
        isJson: true,
        data: encodeText('{"$tb":100}'),
        metadata: new Uint8Array(0),
      },
    ]);
    expect(await userOf(one, value)).toBeNull();
    await expect(one.login()).rejects.toMatchObject({
      code: 'invalid_metadata',
      data: { stream: SESSION_ENDS_STREAM },
    });
    await world.store.deleteStream(SESSION_ENDS_STREAM, ANY, 'soft');
    expect(await userOf(one, await one.login())).toEqual(KIM);
  });

  test('where older ends are not kept any more, what began before the oldest one that is counts as ended, and what began later does not', async () => {
    const before = await one.login();
    for (let i = 0; i < 3; i++) await one.sessions.end(await one.login());
    await world.clock.advance(1_000);
    const since = await one.login();
    await world.store.append(`$$${SESSION_ENDS_STREAM}`, ANY, [
      {
        id: crypto.randomUUID(),
        type: '$metadata',
        isJson: true,
        data: encodeText('{"$maxCount":1}'),
        metadata: new Uint8Array(0),
      },
    ]);
    for (const node of [one, two]) expect([await userOf(node, before), await userOf(node, since)]).toEqual([null, KIM]);
    await world.clock.advance(1_000);
    await one.sessions.end(await one.login());
    // Who has read the ends knows them; who reads them now knows the last one.
    expect(await userOf(await member('shared', 9), since)).toBeNull();
    expect(await userOf(one, await two.login())).toEqual(KIM);
  });

  test('a member whose clock is behind that of whoever wrote the oldest end begins sessions that count, and no longer ones', async () => {
    await one.sessions.end(await one.login());
    await world.store.deleteStream(SESSION_ENDS_STREAM, ANY, 'soft');
    const ahead = world.clock.nowMs() + 300_000;
    await world.store.append(SESSION_ENDS_STREAM, ANY, [
      {
        id: crypto.randomUUID(),
        type: '$ui-session-ended',
        isJson: true,
        data: encodeText(JSON.stringify({ session: '', endedMs: ahead })),
        metadata: new Uint8Array(0),
      },
    ]);
    const value = await one.login();
    for (const node of [one, two])
      expect(await node.sessions.find(value)).toMatchObject({
        principal: KIM,
        endsMs: world.clock.nowMs() + SESSION_MS,
      });
  });

  test('what others have written to the stream ends nothing', async () => {
    const value = await one.login();
    for (const data of [{ session: 7, endedMs: 1 }, { session: 'other' }, {}, 'text', null]) {
      await world.store.append(SESSION_ENDS_STREAM, ANY, [
        {
          id: crypto.randomUUID(),
          type: '$ui-session-ended',
          isJson: true,
          data: encodeText(JSON.stringify(data)),
          metadata: new Uint8Array(0),
        },
      ]);
    }
    for (const node of [one, two]) expect(await userOf(node, value)).toEqual(KIM);
  });
});

describe('keys', () => {
  test('are kept nowhere: logins write nothing, and whoever has the secret has the keys', async () => {
    const values = await Promise.all([one.login(), two.login(), one.login('second', 'x'), two.login('second', 'x')]);
    for (const value of values)
      for (const node of [one, two, await member('shared', 9)]) expect(await userOf(node, value)).not.toBeNull();
    expect((await world.store.streamInfo(SESSION_ENDS_STREAM)).lastEventNumber).toBe(-1);
  });

  test('change every day, and the one before counts as long as what it has signed', async () => {
    await world.clock.advance(DAY_MS - (world.clock.nowMs() % DAY_MS) - 1);
    const last = await one.login();
    await world.clock.advance(1);
    const first = await two.login();
    await world.clock.advance(SESSION_MS - 2);
    for (const node of [one, two, await member('shared', 9)])
      expect([await userOf(node, last), await userOf(node, first)]).toEqual([KIM, KIM]);
    // The key of a day is that of the day which the session names.
    const keys = new SessionKeys(new FakeKeys(), async () => ['shared']);
    const [today, tomorrow, again] = [
      await keys.signing(0),
      await keys.signing(DAY_MS),
      await keys.signing(DAY_MS - 1),
    ];
    expect([today.id, today.bytes]).toEqual([again.id, again.bytes]);
    expect(tomorrow.bytes).not.toEqual(today.bytes);
    expect([await keys.keyOf(today.id, DAY_MS), await keys.keyOf('other', 0)]).toEqual([tomorrow, null]);
  });

  test('of a token that came before count until their sessions end, and begin none', async () => {
    const value = await one.login();
    const rotated = await member('new', 9, 'shared');
    const later = await rotated.login();
    expect([await userOf(rotated, value), await userOf(rotated, later), await userOf(one, later)]).toEqual([
      KIM,
      KIM,
      null,
    ]);
    expect([await userOf(await member('new', 10), value), await userOf(await member('new', 11), later)]).toEqual([
      null,
      KIM,
    ]);
  });

  test('that are not known make a session none, with one warning', async () => {
    const [value, another] = [await one.login(), await one.login()];
    expect([await userOf(stranger, value), await userOf(stranger, another)]).toEqual([null, null]);
    expect(world.log.at('warn').filter((line) => line.includes('unknown key'))).toHaveLength(1);
    expect([await userOf(stranger, await stranger.login()), await userOf(one, value)]).toEqual([KIM, KIM]);
  });

  test('cost whoever guesses the secret as much as a password, and the node once', async () => {
    const keys = new FakeKeys();
    const made = new SessionKeys(keys, async () => ['shared', 'before']);
    const [first] = await Promise.all([made.signing(0), made.signing(0)]);
    for (let i = 0; i < 3; i++) await made.keyOf('other', 0);
    expect([first.bytes.length, keys.derivations]).toEqual([32, ['scrypt', 'scrypt']]);
  });

  test('are asked for by a session that may count alone', async () => {
    const asked: boolean[] = [];
    const keys = new FakeKeys();
    const { sessions } = createSecurity(
      {
        store: world.store,
        keys,
        clock: world.clock,
        ids: new SeededIds(5),
        log: world.log,
        meter: silentMeter,
        sessions: {
          secrets: async (isBeginning) => {
            asked.push(isBeginning);
            return ['shared'];
          },
        },
      },
      CONFIG,
    );
    const value = await one.login();
    const long = [...(JSON.parse(new TextDecoder().decode(decodeBase64Url(value.split('.')[1]!)!)) as unknown[])].with(
      4,
      world.clock.nowMs() + 2 * SESSION_MS,
    );
    for (const none of ['x', '2.e30.AA', `2.${encodeBase64Url(encodeText(JSON.stringify(long)))}.AAAA`])
      expect(await sessions!.find(none)).toBeNull();
    expect(asked).toEqual([]);
    expect(await sessions!.find(value)).not.toBeNull();
    expect(asked).toEqual([false]);
  });
});

test('a session that another member has verified is resumed as the user is now', async () => {
  const session = (await one.sessions.find(await one.login()))!;
  expect(await two.sessions.resume(session.proof)).toEqual(KIM);
  expect(
    await two.sessions.resume({ ...session.proof, lastEventNumber: session.proof.lastEventNumber + 1 }),
  ).toBeNull();
  expect(await two.sessions.resume({ ...session.proof, user: 'nobody' })).toBeNull();
  expect(await two.sessions.resume({ ...session.proof, user: '\u0000' })).toBeNull();
});
