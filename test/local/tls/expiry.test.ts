import { expect, test } from 'vitest';
import type { Log } from '../../../core/ports/log.ts';
import { silentLog } from '../../../core/ports/log.ts';
import type { CertificateSet } from '../../../local/tls/certificate-set.ts';
import { watchExpiry } from '../../../local/tls/node-certificates.ts';
import { devCertificate } from '../../../local/tls/dev-certificate.ts';
import { HandshakeLog } from '../../../local/tls/handshakes.ts';
import { loadCertificates } from '../../../local/tls/load-certificates.ts';
import { issueNode, issueRoot } from '../../support/certificates.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { Files } from './files.ts';

const DAY_MS = 86_400_000;

function expiring(notAfterMs: number, remindDays = 30): CertificateSet {
  const loaded = [
    {
      kind: 'node',
      subject: 'CN=n',
      serial: '1',
      thumbprint: 'AA',
      notAfter: new Date(notAfterMs).toISOString(),
      daysLeft: 0,
    },
  ] as const;
  return {
    secureContext: { cert: '', key: '', ca: [] },
    reservedNodeCommonName: null,
    trustsNodes: true,
    loaded,
    notAfterMs,
    remindDays,
    isMadeAtStart: false,
  };
}

test('a warning a day from thirty days before the end on, an error after it, none after a reload', async () => {
  const clock = new ManualClock();
  const lines: string[] = [];
  const log: Log = {
    ...silentLog,
    warn: (message) => lines.push(`warn ${message}`),
    error: (message) => lines.push(`error ${message}`),
  };
  let set = expiring(clock.nowMs() + 31 * DAY_MS);
  const end = new AbortController();
  const watch = watchExpiry({ certificates: () => set, clock, log, signal: end.signal });
  await clock.advance(DAY_MS);
  expect(lines).toEqual([]);
  await clock.advance(DAY_MS);
  expect(lines).toEqual([expect.stringMatching(/^warn .* expires in 29\.0 days/)]);
  await clock.advance(28 * DAY_MS);
  expect(lines).toHaveLength(29);
  await clock.advance(DAY_MS);
  expect(lines.at(-1)).toMatch(/^error .* has expired/);
  set = expiring(clock.nowMs() + 365 * DAY_MS);
  await clock.advance(5 * DAY_MS);
  expect(lines).toHaveLength(30);
  end.abort();
  await watch;
  expect(clock.sleeping).toBe(0);
});

test('a development certificate is told of on its last day only, when a start makes another one', async () => {
  const clock = new ManualClock();
  const lines: string[] = [];
  const log: Log = { ...silentLog, warn: (message) => lines.push(message), error: (message) => lines.push(message) };
  const { set } = await devCertificate(clock.nowMs());
  const end = new AbortController();
  const watch = watchExpiry({ certificates: () => set, clock, log, signal: end.signal });
  for (let day = 0; day < 29; day++) await clock.advance(DAY_MS);
  expect(lines).toEqual([]);
  await clock.advance(DAY_MS);
  expect(lines).toEqual([expect.stringMatching(/has expired: start the node again, which makes a new one$/)]);
  end.abort();
  await watch;
});

test('one that is renewed every few days is told of in the last third of its time', async () => {
  const root = await issueRoot();
  const remindDays = async (validDays: number) => {
    const { cert, key } = await issueNode(root, 'node.parcels.test', { from: -0.5, to: validDays - 0.5 });
    const files = await Files.of({ 'node.crt': cert, 'node.key': key, 'roots/ca.crt': root.cert });
    return Math.round((await loadCertificates(files.options(), Date.now())).remindDays * 100) / 100;
  };
  expect([await remindDays(1.5), await remindDays(6), await remindDays(90), await remindDays(365)]).toEqual([
    0.5, 2, 30, 30,
  ]);
});

test('what clients cause is logged twenty times a minute at most, and then how much was left out', () => {
  let now = 0;
  const lines: [string, unknown][] = [];
  const noted = new HandshakeLog(
    {
      ...silentLog,
      debug: (message, fields) => {
        lines.push([message, fields]);
      },
    },
    () => now,
  );
  for (let i = 0; i < 1_000; i++) noted.note('failed', { i });
  expect(lines).toHaveLength(20);
  now = 60_000;
  noted.note('failed', { i: 1_000 });
  expect(lines.slice(20)).toEqual([
    ['lines about TLS connections were dropped', { count: 980 }],
    ['failed', { i: 1_000 }],
  ]);
});
