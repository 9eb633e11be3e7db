import { describe, expect, test } from 'vitest';
import { checkConfig, checkStart, checkTls, isLoopback, tlsModeOf } from '../../../local/config/check-config.ts';
import { load, problemsOf } from './support.ts';

describe('certificates', () => {
  test.each([
    [[], 'certificates'],
    [['--dev'], 'dev'],
    [['--disable-tls'], 'off'],
    [['--insecure'], 'off'],
    [['--insecure', '--dev'], 'off'],
    [['--disable-tls', '--dev'], 'off'],
  ] as const)('%j: %s', (words, mode) => {
    expect(tlsModeOf(load(words).values)).toBe(mode);
  });
  test('without one the message names every way on', () => {
    const [message] = problemsOf(() => checkTls(load([])));
    for (const way of ['--certificate-file', '--dev', '--disable-tls', '--insecure']) expect(message).toContain(way);
    expect(problemsOf(() => checkTls(load(['--certificate-private-key-file', 'x'])))[0]).toContain(
      '--certificate-private-key-file is only its private key.',
    );
  });
  test.each([[['--certificate-file=x']], [['--dev']], [['--disable-tls']], [['--insecure']]])(
    '%j is enough',
    (words) => {
      expect(problemsOf(() => checkTls(load(words)))).toEqual([]);
    },
  );
});

describe('pages of other origins', () => {
  test.each<[string[], boolean]>([
    [['--cors-origins=*'], false],
    [['--cors-origins=*', '--insecure'], true],
    [['--cors-origins=https://a.test', '--insecure'], false],
    [['--cors-origins=https://a.test,*', '--insecure'], true],
    [['--insecure'], false],
  ])('%j', (words, isRefused) => {
    const problems = problemsOf(() => checkConfig(load(words)));
    expect(problems).toEqual(isRefused ? [expect.stringContaining('--cors-origins')] : []);
  });
});

describe('default passwords', () => {
  const refused = (words: string[], hasDefaultPasswords: boolean) =>
    problemsOf(() => checkStart(load(['--disable-tls', ...words]), { hasDefaultPasswords })).length > 0;
  test.each<[string[], boolean, boolean]>([
    [[], true, false],
    [['--node-ip=127.0.0.2'], true, false],
    [['--node-ip=::1'], true, false],
    [['--node-ip=0.0.0.0'], true, true],
    [['--node-ip=::'], true, true],
    [['--node-ip=192.0.2.1'], true, true],
    [['--node-ip=192.0.2.1'], false, false],
    [['--node-ip=192.0.2.1', '--allow-default-passwords'], true, false],
    [['--node-ip=192.0.2.1', '--insecure'], true, false],
    [['--node-ip=192.0.2.1', '--insecure=false'], true, true],
  ])('%j, default passwords: %s', (words, hasDefaultPasswords, expected) => {
    expect(refused(words, hasDefaultPasswords)).toBe(expected);
  });
  test('the message says what to do', () => {
    const [message] = problemsOf(() => checkStart(load(['--dev', '--node-ip=0.0.0.0']), { hasDefaultPasswords: true }));
    for (const part of ['--node-ip 0.0.0.0', 'SERVER_DEFAULT_ADMIN_PASSWORD', '--allow-default-passwords'])
      expect(message).toContain(part);
  });
});

test.each([
  ['127.0.0.1', true],
  ['127.255.0.1', true],
  ['::1', true],
  ['::ffff:127.0.0.1', true],
  ['::ffff:192.0.2.1', false],
  ['0.0.0.0', false],
  ['::', false],
  ['128.0.0.1', false],
  ['fe80::1', false],
])('%s reaches only this machine: %s', (address, expected) => {
  expect(isLoopback(address)).toBe(expected);
});
