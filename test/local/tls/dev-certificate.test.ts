import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { X509Certificate } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import { devCertificate } from '../../../local/tls/dev-certificate.ts';
import { call, serve } from './clients.ts';

const DAY_MS = 86_400_000;

async function folder(): Promise<string> {
  const made = await mkdtemp(path.join(tmpdir(), 'skua-dev-'));
  onTestFinished(() => rm(made, { recursive: true, force: true }));
  return made;
}

test('it serves localhost by name and by both addresses, trusted through itself', async () => {
  const { set, certificate, fingerprint } = await devCertificate(Date.now());
  const parsed = new X509Certificate(certificate);
  expect(parsed.fingerprint256).toBe(fingerprint);
  expect([parsed.checkHost('localhost'), parsed.checkIP('127.0.0.1'), parsed.checkIP('::1')]).toEqual([
    'localhost',
    '127.0.0.1',
    '::1',
  ]);
  expect(set.loaded.map(({ kind, subject, daysLeft }) => [kind, subject, daysLeft])).toEqual([
    ['node', 'CN=localhost', 29],
    ['root', 'CN=localhost', 29],
  ]);
  const server = await serve({ tls: { certificates: set } });
  expect((await call(server, { ca: certificate })).status).toBe(200);
  expect((await call(server, { ca: certificate, servername: 'localhost' })).status).toBe(200);
});
test('two starts have two certificates', async () => {
  expect((await devCertificate(Date.now())).fingerprint).not.toBe((await devCertificate(Date.now())).fingerprint);
});
test('kept in a file for its owner only, it is used again until it is about to expire', async () => {
  const file = path.join(await folder(), 'dev.pem');
  const now = Date.now();
  const first = await devCertificate(now, file);
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(await readFile(`${file}.crt`, 'utf8')).toBe(first.certificate);
  expect((await devCertificate(now + 28 * DAY_MS, file)).fingerprint).toBe(first.fingerprint);
  const renewed = await devCertificate(now + 29.5 * DAY_MS, file);
  expect(renewed.fingerprint).not.toBe(first.fingerprint);
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect((await devCertificate(now + 30 * DAY_MS, file)).fingerprint).toBe(renewed.fingerprint);
});
test('a file that is something else is left alone', async () => {
  const file = path.join(await folder(), 'dev.pem');
  await writeFile(file, 'precious');
  await expect(devCertificate(Date.now(), file)).rejects.toMatchObject({
    code: 'certificate_invalid',
    data: { file, reason: expect.stringContaining('is not a development certificate') },
  });
  expect(await readFile(file, 'utf8')).toBe('precious');
});
test('files beside it that are something else are left alone, too', async () => {
  const at = await folder();
  const file = path.join(at, 'kept.pem');
  await writeFile(`${file}.tmp`, 'mine');
  await writeFile(`${file}.crt`, 'mine');
  await expect(devCertificate(Date.now(), file)).rejects.toMatchObject({
    code: 'certificate_invalid',
    data: { file: `${file}.crt` },
  });
  await rm(`${file}.crt`);
  await devCertificate(Date.now(), file);
  expect(await readFile(`${file}.tmp`, 'utf8')).toBe('mine');
  expect((await readdir(at)).sort()).toEqual(['kept.pem', 'kept.pem.crt', 'kept.pem.tmp']);
});
test('a folder that is not there', async () => {
  const file = path.join(await folder(), 'absent', 'dev.pem');
  await expect(devCertificate(Date.now(), file)).rejects.toMatchObject({
    code: 'certificate_invalid',
    data: { reason: expect.stringContaining('ENOENT') },
  });
});
