import { describe, expect, test } from 'vitest';
import { silentMeter } from '../../core/ports/meter.ts';
import { type PasswordFormat, Passwords, type Secret } from '../../core/security/passwords.ts';
import { nodeKeys } from '../../infra/node-keys.ts';
import { FakeKeys, outcome } from './kit.ts';

function make(format: PasswordFormat) {
  const keys = new FakeKeys();
  const passwords = new Passwords(keys, silentMeter, format);
  return { keys, passwords };
}

/** Recorded from the reference database: the password of `ouro` after a reset. */
const RECORDED: Secret = { salt: 'AY46wDi2PWntlYn4TsZsVA==', hash: '851Odh5EGOgPh4of5aWXBja0Fic=' };

describe('real derivations', () => {
  test.each(['strong', 'compatible'] as const)('a %s secret matches its password only', async (format) => {
    const passwords = new Passwords(nodeKeys, silentMeter, format);
    const secret = await passwords.create('pass:wörd');
    expect(await passwords.matches(secret, 'pass:wörd')).toBe(true);
    expect(await passwords.matches(secret, 'pass:word')).toBe(false);
    expect(await passwords.matches(secret, '')).toBe(false);
    expect(await passwords.matches(await passwords.create(''), '')).toBe(true);
  });

  test.each(['strong', 'compatible'] as const)(
    'a recorded secret matches where %s ones are written',
    async (format) => {
      const passwords = new Passwords(nodeKeys, silentMeter, format);
      expect(await passwords.matches(RECORDED, 'n3w-Pass')).toBe(true);
      expect(await passwords.matches(RECORDED, 'n3w-pass')).toBe(false);
    },
  );

  test('both kinds are verified whichever is written', async () => {
    const strong = new Passwords(nodeKeys, silentMeter, 'strong');
    const compatible = new Passwords(nodeKeys, silentMeter, 'compatible');
    expect(await compatible.matches(await strong.create('x'), 'x')).toBe(true);
    expect(await strong.matches(await compatible.create('x'), 'x')).toBe(true);
  });
});

describe('what is stored', () => {
  test('compatible: 20 bytes in Base64 and a salt of 16', async () => {
    const { salt, hash } = await make('compatible').passwords.create('x');
    expect(atob(salt).length).toBe(16);
    expect(atob(hash).length).toBe(20);
  });

  test('strong: parameters, salt and key in one text, and a salt that the reference can read', async () => {
    const { salt, hash } = await make('strong').passwords.create('x');
    expect(hash).toMatch(/^\$scrypt\$ln=15,r=8,p=1\$[A-Za-z0-9+/]{22}==\$[A-Za-z0-9+/]{43}=$/);
    expect(hash.split('$')[3]).toBe(salt);
  });

  test('two of one password differ', async () => {
    const { passwords } = make('strong');
    expect((await passwords.create('x')).hash).not.toBe((await passwords.create('x')).hash);
  });
});

describe('what can be no secret', () => {
  test.each([
    '',
    '$',
    '$scrypt$',
    '$scrypt$ln=15,r=8,p=1$AAAA',
    '$scrypt$ln=30,r=8,p=1$AAAA$AAAA',
    '$scrypt$ln=15,r=64,p=1$AAAA$AAAA',
    '$scrypt$ln=15,r=8,p=99$AAAA$AAAA',
    '$scrypt$ln=0,r=8,p=1$AAAA$AAAA',
    '$scrypt$ln=15,r=8,p=1$A=A=$AAAA',
    '$argon2id$v=19$x',
    'not base64',
  ])('%j matches nothing and costs a derivation', async (hash) => {
    const { passwords, keys } = make('strong');
    expect(await passwords.matches({ salt: '', hash }, '')).toBe(false);
    expect(keys.derivations).toContain('scrypt');
  });

  test('a password too long for anyone is derived as an empty one, and never matches', async () => {
    const { passwords } = make('strong');
    const secret = await passwords.create('');
    expect(await passwords.matches(secret, 'x'.repeat(1_025))).toBe(false);
    expect(await passwords.matches(secret, 'é'.repeat(600))).toBe(false);
    expect(await passwords.matches(secret, '')).toBe(true);
  });
});

describe('the cost of an answer', () => {
  test('is the same without a user', async () => {
    for (const format of ['strong', 'compatible'] as const) {
      const { passwords, keys } = make(format);
      const secret = await passwords.create('x');
      const costs: string[][] = [];
      for (const [candidate, password] of [
        [secret, 'x'],
        [secret, 'y'],
        [null, 'x'],
      ] as const) {
        keys.derivations = [];
        await passwords.matches(candidate, password);
        costs.push(keys.derivations);
      }
      expect(costs).toEqual([costs[0], costs[0], costs[0]]);
    }
  });

  test('of a recorded user is at least that of the others', async () => {
    const { passwords, keys } = make('strong');
    await passwords.matches(RECORDED, 'x');
    expect(keys.derivations).toEqual(['pbkdf2', 'scrypt']);
  });
});

describe('the queue', () => {
  test('runs two at a time, lets 64 wait, and refuses the rest', async () => {
    const { passwords, keys } = make('strong');
    const open = keys.hold();
    const all = Array.from({ length: 70 }, () => outcome(() => passwords.create('x')));
    expect(await Promise.all(all.slice(66))).toEqual(Array.from({ length: 4 }, () => 'too_busy'));
    expect(keys.derivations.length).toBe(2);
    open();
    expect(new Set(await Promise.all(all.slice(0, 66)))).toEqual(new Set(['ok']));
    expect(keys.derivations.length).toBe(66);
    expect(await outcome(() => passwords.create('x'))).toBe('ok');
  });

  test('lets places take turns, and users go ahead where they have logged in before', async () => {
    const { passwords, keys } = make('strong');
    const open = keys.hold();
    const ended: string[] = [];
    const wait = (place: string, isFamiliar = false) =>
      passwords.matches(null, 'x', { place, isFamiliar }).then(() => {
        ended.push(isFamiliar ? place.toUpperCase() : place);
      });
    const all = [
      wait('-'),
      wait('-'),
      wait('a'),
      wait('a'),
      wait('a'),
      wait('b'),
      wait('b'),
      wait('c'),
      wait('a', true),
      wait('d', true),
      wait('a', true),
    ];
    open();
    await Promise.all(all);
    expect(ended.join('')).toBe('--ADAabcaba');
  });

  test('gives room to who has less of it, and at last to those who are familiar', async () => {
    const { passwords, keys } = make('strong');
    const open = keys.hold();
    const wait = (place: string, isFamiliar = false) =>
      outcome(() => passwords.matches(null, 'x', { place, isFamiliar }));
    const count = async (results: Promise<string>[]) =>
      (await Promise.all(results)).filter((each) => each === 'ok').length;
    const crowds = ['a', 'b'].map((place) => Array.from({ length: 60 }, () => wait(place)));
    const few = Array.from({ length: 30 }, () => wait('c'));
    const familiar = Array.from({ length: 60 }, () => wait('a', true));
    open();
    // At most 48 of one place; those who are familiar push out the last of whoever has most.
    expect(await count(familiar)).toBe(48);
    expect(await count([...crowds.flat(), ...few])).toBe(66 - 48);
    expect((await count(crowds[0]!)) - (await count(few))).toBeLessThanOrEqual(3);
    expect(await count([wait('a')])).toBe(1);
  });

  test('goes on after an error', async () => {
    const { passwords, keys } = make('strong');
    keys.gate = Promise.reject(new Error('no memory'));
    keys.gate.catch(() => {});
    expect(await Promise.all([1, 2, 3].map(() => outcome(() => passwords.create('x'))))).toEqual(
      Array.from({ length: 3 }, () => 'Error: no memory'),
    );
    keys.gate = null;
    expect(await outcome(() => passwords.create('x'))).toBe('ok');
  });
});
