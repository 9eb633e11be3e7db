import { describe, expect, test } from 'vitest';
import { type WarningFacts, warningsOf } from '../../../local/node/warnings.ts';

const DAY_MS = 86_400_000;
const NOW_MS = Date.UTC(2031, 3, 2);
const ending = (notAfterMs: number, remindDays = 30, isMadeAtStart = false): Pick<WarningFacts, 'certificate'> => ({
  certificate: { notAfterMs, remindDays, isMadeAtStart },
});
const GOOD: WarningFacts = {
  nowMs: NOW_MS,
  isInsecure: false,
  hasDefaultPasswords: false,
  hasTls: true,
  isReachable: true,
  isInMemory: false,
  ...ending(NOW_MS + 90 * DAY_MS),
  licence: { refusal: null, expiresAtMs: null },
  disk: { totalBytes: 1_000_000_000_000, freeBytes: 500_000_000_000, chunkSizeBytes: 268_435_456 },
  backups: { place: '/backups', newestMs: NOW_MS - DAY_MS, provenMs: NOW_MS - 7 * DAY_MS },
  wasScavenged: true,
  chunks: 100,
  isAuditFailing: false,
  deadMembers: [],
  bucketSilentMs: 0,
  logLevel: 'info',
  configuration: [],
};

const of = (more: Partial<WarningFacts>) =>
  warningsOf({ ...GOOD, ...more }).map(({ code, severity }) => [code, severity]);
const disk = (freeBytes: number, totalBytes = 1_000_000_000_000) => ({
  disk: { totalBytes, freeBytes, chunkSizeBytes: 268_435_456 },
});

describe('warnings', () => {
  test('of a node that is well are none', () => {
    expect(warningsOf(GOOD)).toEqual([]);
  });

  test.each<[string, Partial<WarningFacts>, readonly (readonly string[])[]]>([
    ['everybody may do everything', { isInsecure: true, hasTls: false }, [['insecure', 'error']]],
    ['the same on this machine only', { isInsecure: true, hasTls: false, isReachable: false }, [['insecure', 'info']]],
    ['passwords that everybody knows', { hasDefaultPasswords: true }, [['default-passwords', 'error']]],
    [
      'the same on this machine only',
      { hasDefaultPasswords: true, isReachable: false },
      [['default-passwords', 'warning']],
    ],
    ['no TLS', { hasTls: false }, [['no-tls', 'warning']]],
    ['no TLS on this machine only', { hasTls: false, isReachable: false }, [['no-tls', 'info']]],
    ['a certificate with 30 days', { ...ending(NOW_MS + 30 * DAY_MS) }, []],
    ['a certificate with less', { ...ending(NOW_MS + 30 * DAY_MS - 1) }, [['certificate-expires', 'warning']]],
    ['a certificate with less than 7 days', { ...ending(NOW_MS + 7 * DAY_MS - 1) }, [['certificate-expires', 'error']]],
    ['a certificate of a week with three days', ending(NOW_MS + 3 * DAY_MS, 7 / 3), []],
    ['the same with two', ending(NOW_MS + 2 * DAY_MS, 7 / 3), [['certificate-expires', 'warning']]],
    ['the same with half a day', ending(NOW_MS + 0.5 * DAY_MS, 7 / 3), [['certificate-expires', 'error']]],
    ['a certificate that has expired', { ...ending(NOW_MS - 1) }, [['certificate-expires', 'error']]],
    [
      'a licence that ends',
      { licence: { refusal: null, expiresAtMs: NOW_MS + 20 * DAY_MS } },
      [['licence-expires', 'warning']],
    ],
    [
      'a licence that is refused',
      { licence: { refusal: 'Set another.', expiresAtMs: NOW_MS - DAY_MS } },
      [['licence-refused', 'warning']],
    ],
    ['15 % free', disk(150_000_000_000), []],
    ['less', disk(149_000_000_000), [['disk-nearly-full', 'warning']]],
    ['less than 5 %', disk(49_000_000_000), [['disk-nearly-full', 'error']]],
    ['a small disk with less than two chunks free', disk(500_000_000, 1_000_000_000), [['disk-nearly-full', 'error']]],
    ['a disk of which nothing is known', { disk: null }, []],
    ['no repository', { backups: { place: null, newestMs: null, provenMs: null } }, [['no-backup', 'warning']]],
    ['no backup', { backups: { place: '/b', newestMs: null, provenMs: null } }, [['no-backup', 'warning']]],
    [
      'an old backup that nobody has tried',
      { backups: { place: '/b', newestMs: NOW_MS - 3 * DAY_MS, provenMs: null } },
      [
        ['backup-stale', 'warning'],
        ['backup-unproven', 'info'],
      ],
    ],
    [
      'a drill of long ago',
      { backups: { place: '/b', newestMs: NOW_MS, provenMs: NOW_MS - 40 * DAY_MS } },
      [['backup-unproven', 'info']],
    ],
    [
      'nothing to back up',
      { backups: { place: null, newestMs: null, provenMs: null }, isInMemory: true },
      [['in-memory', 'info']],
    ],
    ['a large log that was never scavenged', { wasScavenged: false }, [['never-scavenged', 'info']]],
    ['a small one', { wasScavenged: false, chunks: 4 }, []],
    ['an audit that is lost', { isAuditFailing: true }, [['audit-failing', 'error']]],
    ['members that are lost', { deadMembers: ['a:1', 'b:2'] }, [['member-lost', 'warning']]],
    ['a bucket that is silent', { bucketSilentMs: 10_001 }, [['bucket-silent', 'error']]],
    ['a log of everything', { logLevel: 'debug' }, [['log-level-debug', 'info']]],
    ['no log', { logLevel: 'off' }, [['log-off', 'warning']]],
    [
      'what the configuration says',
      { configuration: Array.from({ length: 30 }, () => 'Beware.') },
      Array.from({ length: 10 }, () => ['configuration', 'info']),
    ],
  ])('of %s', (_what, facts, expected) => {
    expect(of(facts)).toEqual(expected);
  });

  test('come with the severest first, and say what to do', () => {
    const all = warningsOf({
      ...GOOD,
      logLevel: 'debug',
      hasTls: false,
      isAuditFailing: true,
      ...ending(NOW_MS + 20 * DAY_MS),
    });
    expect(all.map(({ severity }) => severity)).toEqual(['error', 'warning', 'warning', 'info']);
    for (const { message, todo } of all) for (const text of [message, todo]) expect(text).toMatch(/^[A-Z].*\.$/);
    expect(warningsOf({ ...GOOD, ...ending(NOW_MS + 20 * DAY_MS) })[0]!.message).toBe(
      'The certificate of the node expires in 20 days.',
    );
    expect(warningsOf({ ...GOOD, ...ending(NOW_MS + 0.9 * DAY_MS, 1, true) })[0]!.todo).toBe(
      'Start the node again: it makes a new one.',
    );
  });
});
