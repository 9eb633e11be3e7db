import { createPublicKey } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { isSignedBy, readLicence, signLicence } from '../../core/security/licence-token.ts';
import { nodeKeys } from '../../infra/keys.ts';
import { runProgram } from '../../local/cli/run.ts';
import { COMMANDS } from '../../local/commands/all.ts';
import { FakeIo } from './support.ts';

let folder: string;
beforeEach(async () => { folder = await mkdtemp(path.join(tmpdir(), 'skua-license-')); });
afterEach(() => rm(folder, { recursive: true }));

const at = (name: string) => path.join(folder, name);

async function run(...words: string[]) {
  const io = new FakeIo();
  const code = await runProgram({ commands: COMMANDS, version: '1' }, ['license', ...words], io);
  return { code, out: io.out.replaceAll(folder, '.'), err: io.err.replaceAll(folder, '.') };
}

const modeOf = async (name: string) => (await stat(at(name))).mode & 0o777;
const textOf = (name: string) => readFile(at(name), 'utf8');

async function issuer(): Promise<{ secret: string; known: string }> {
  expect((await run('issuer', at('issuer.key'))).code).toBe(0);
  return { secret: await textOf('issuer.key'), known: await textOf('issuer.key.pub') };
}

describe('issuer', () => {
  test('makes a private key for its owner only, and the public one that belongs to it', async () => {
    expect(await run('issuer', at('issuer.key'))).toEqual({
      code: 0, err: '',
      out: './issuer.key signs licence keys: keep it secret. Issue one with `skua license issue ./issuer.key`.\n./issuer.key.pub verifies them: give it to nodes with --licensing-issuer-key-file.\n',
    });
    expect([await modeOf('issuer.key'), await modeOf('issuer.key.pub') & 0o600]).toEqual([0o600, 0o600]);
    expect(createPublicKey(await textOf('issuer.key')).export({ format: 'pem', type: 'spki' })).toBe(await textOf('issuer.key.pub'));
    expect(await readdir(folder)).toEqual(['issuer.key', 'issuer.key.pub']);
  });

  test.each(['issuer.key', 'issuer.key.pub'])('%s is not overwritten, and nothing is left behind', async (name) => {
    await writeFile(at(name), 'precious');
    expect(await run('issuer', at('issuer.key'))).toEqual({ code: 4, out: '', err: `error file_exists: ./${name} is there already, and is left as it is. Name another file, or add --force to replace it.\n` });
    expect([await readdir(folder), await textOf(name)]).toEqual([[name], 'precious']);
  });

  test('a link in its place is not followed', async () => {
    await symlink(at('elsewhere'), at('issuer.key'));
    expect((await run('issuer', at('issuer.key'))).code).toBe(4);
    expect(await readdir(folder)).toEqual(['issuer.key']);
  });

  test('--force replaces, with the right mode', async () => {
    await writeFile(at('issuer.key'), 'old', { mode: 0o644 });
    expect(await run('issuer', at('issuer.key'), '--force', '--json')).toMatchObject({ code: 0, out: '{"privateKeyFile":"./issuer.key","publicKeyFile":"./issuer.key.pub"}\n' });
    expect([await modeOf('issuer.key'), (await textOf('issuer.key')).split('\n')[0], await readdir(folder)]).toEqual([0o600, '-----BEGIN PRIVATE KEY-----', ['issuer.key', 'issuer.key.pub']]);
  });

  test('a folder that is not there: 3', async () => {
    expect(await run('issuer', at('no/issuer.key'))).toMatchObject({ code: 3, err: expect.stringMatching(/^error file_unwritable: .*ENOENT/) });
  });
});

describe('issue', () => {
  test('a key on standard output, for a year and auto-scavenge', async () => {
    const { known } = await issuer();
    const { code, out, err } = await run('issue', at('issuer.key'));
    expect([code, err]).toEqual([0, '']);
    const token = readLicence(out);
    expect(isSignedBy(token, known, nodeKeys)).toBe(true);
    expect(token.claims).toMatchObject({ features: ['AUTO_SCAVENGE'], notBeforeMs: null, holder: null, id: expect.stringMatching(/^[0-9a-f-]{36}$/) });
    expect(token.claims.expiresAtMs - token.claims.issuedAtMs!).toBe(365 * 86_400_000);
  });

  test('into a file for its owner only, which is not overwritten', async () => {
    await issuer();
    const words = ['issue', at('issuer.key'), '--days', '30', '--feature', 'all', '--feature', 'AUTO_SCAVENGE', '--holder', 'Kim Doe', '--out', at('node.license')];
    expect(await run(...words)).toEqual({ code: 0, err: '', out: './node.license grants AUTO_SCAVENGE, ALL for 30 days. Set what it holds as Licensing:LicenseKey.\n' });
    expect([await modeOf('node.license'), readLicence(await textOf('node.license')).claims]).toMatchObject([0o600, { features: ['AUTO_SCAVENGE', 'ALL'], holder: 'Kim Doe' }]);
    expect((await run(...words)).code).toBe(4);
    expect(JSON.parse((await run(...words, '--force', '--json')).out)).toMatchObject({ features: ['AUTO_SCAVENGE', 'ALL'], holder: 'Kim Doe', file: './node.license' });
    expect(JSON.parse((await run('issue', at('issuer.key'), '--json')).out)).toMatchObject({ licenseKey: expect.stringMatching(/^ey/), expiresAt: expect.any(String) });
  });

  test.each([
    [['--days', '0'], 2, /--days must be a whole number from 1 to 36500/], [['--feature', 'LDAP'], 2, /--feature must be one of AUTO_SCAVENGE, ALL, not 'LDAP'/], [['--force'], 2, /--force is about the file of --out/],
  ])('%j is refused', async (words, code, err) => {
    await issuer();
    expect(await run('issue', at('issuer.key'), ...words)).toMatchObject({ code, out: '', err: expect.stringMatching(err) });
  });

  test('only with a private key', async () => {
    await issuer();
    expect(await run('issue', at('issuer.key.pub'))).toEqual({ code: 1, out: '', err: 'error licence_invalid: ./issuer.key.pub is not usable. It holds a public key, and a private key is needed.\n' });
    expect((await run('issue', at('nothing'))).code).toBe(3);
  });
});

describe('inspect', () => {
  test('a good key, verified and not', async () => {
    await issuer();
    await run('issue', at('issuer.key'), '--holder', 'Kim', '--days', '10', '--out', at('key'));
    const { code, out } = await run('inspect', at('key'));
    expect([code, out]).toEqual([0, expect.stringMatching(/^grants {5}AUTO_SCAVENGE\nexpires {4}20\S+Z \(in \d+ days\)\nissued .*\nholder {5}Kim\nid .*\nsignature  not verified/)]);
    expect(await run('inspect', at('key'), '--issuer-key', at('issuer.key.pub'))).toMatchObject({ code: 0, out: expect.stringContaining('signature  by this issuer\n') });
    expect(JSON.parse((await run('inspect', at('key'), '--issuer-key', at('issuer.key.pub'), '--json')).out)).toMatchObject({ features: ['AUTO_SCAVENGE'], holder: 'Kim', notBefore: null, isVerified: true, refusal: null });
  });

  test('1: of another issuer, expired, not yet valid, for nothing, and what is none', async () => {
    const { secret } = await issuer();
    await run('issue', at('issuer.key'), '--out', at('key'));
    await run('issuer', at('other.key'));
    expect(await run('inspect', at('key'), '--issuer-key', at('other.key.pub'))).toMatchObject({ code: 1, out: expect.stringContaining('not by this issuer') });
    const claims = { features: ['ALL'], expiresAtMs: 1_000, notBeforeMs: null, issuedAtMs: null, holder: null, id: null } as const;
    for (const [more, text] of [[{}, /has expired at 1970-01-01T00:00:01Z/], [{ expiresAtMs: 8e14, notBeforeMs: 7e14 }, /is valid from/], [{ expiresAtMs: 8e14, features: [] }, /grants {5}nothing/]] as const) {
      await writeFile(at('made'), signLicence({ ...claims, ...more }, secret, nodeKeys));
      expect(await run('inspect', at('made'))).toMatchObject({ code: 1, out: expect.stringMatching(text) });
    }
    expect(await run('inspect', at('issuer.key'))).toMatchObject({ code: 1, out: '', err: expect.stringMatching(/^error licence_invalid: \.\/issuer\.key is not usable\. It is no signed token/) });
    expect(await run('inspect', at('key'), '--issuer-key', at('issuer.key'))).toEqual({ code: 1, out: '', err: 'error licence_invalid: ./issuer.key is not usable. It holds a private key, and a public key is needed.\n' });
    expect((await run('inspect', at('nothing'))).code).toBe(3);
  });
});
