import { X509Certificate } from 'node:crypto';
import type { TLSSocket } from 'node:tls';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { nodeKey } from '../../../core/ports/nodes.ts';
import type { NodeAddress } from '../../../core/ports/nodes.ts';
import { identityProblem } from '../../../local/cluster/peer-agent.ts';
import { PeerClient } from '../../../local/cluster/peer-client.ts';
import type { PeerReply } from '../../../local/cluster/peer-exchange.ts';
import { peerOf, socketOf } from '../../../local/http/http-request.ts';
import type { HttpServer } from '../../../local/http/server.ts';
import type { CertificateSet } from '../../../local/tls/certificate-set.ts';
import { loadCertificates } from '../../../local/tls/load-certificates.ts';
import { issue, issueNode, issueRoot, NODE_USAGES } from '../../support/certificates.ts';
import type { Issued } from '../../support/certificates.ts';
import { serve } from '../tls/clients.ts';
import { Files } from '../tls/files.ts';

let root: Issued;
let newRoot: Issued;

beforeAll(async () => {
  root = await issueRoot();
  newRoot = await issueRoot('Parcels Root of the next years');
});

/** As a reload loads them: certificate and key of the node, and the roots that it trusts. */
async function certificates(
  node: Issued,
  roots: readonly Issued[] = [root],
  reservedName: string | null = null,
): Promise<CertificateSet> {
  const files = await Files.of({
    'node.crt': node.cert,
    'node.key': node.key,
    ...Object.fromEntries(roots.map(({ cert }, i) => [`roots/ca${i}.crt`, cert])),
  });
  return loadCertificates(files.options({ certificateReservedNodeCommonName: reservedName }), Date.now());
}

interface Member {
  readonly node: NodeAddress;
  readonly client: PeerClient;
  readonly server: HttpServer;
  /** Serial numbers of the clients' certificates that were seen since the last look. */
  readonly seen: Set<string>;
  reload(set: CertificateSet): void;
}

const NOT_A_MEMBER = () =>
  new Response(JSON.stringify({ code: 'not_a_member' }), { status: 401, headers: { connection: 'close' } });

/** A member that answers members, with the serial number of its own certificate, and nobody else. */
async function member(set: CertificateSet, formerNamesMs: number, connectionLifetimeMs = 600_000): Promise<Member> {
  const seen = new Set<string>();
  const server = await serve({
    tls: { certificates: set, formerNamesMs },
    fetch: (request) => {
      const socket = socketOf(request) as TLSSocket;
      if (peerOf(request) === null) return NOT_A_MEMBER();
      seen.add(socket.getPeerX509Certificate()!.serialNumber);
      return new Response(new X509Certificate((socket.getCertificate() as { raw: Buffer }).raw).serialNumber);
    },
  });
  const client = new PeerClient({ certificates: set, secret: null, connectionLifetimeMs });
  onTestFinished(() => client.close());
  return {
    node: { address: '127.0.0.1', port: server.port },
    client,
    server,
    seen,
    reload: (next) => {
      server.setCertificates(next);
      client.setCertificates(next);
    },
  };
}

function call(from: Member, to: Member): Promise<PeerReply> {
  return from.client.request({
    node: to.node,
    method: 'GET',
    path: '/',
    headers: {},
    body: null,
    as: 'member',
    timeoutMs: 20_000,
  });
}

/** As one that is passed on, which goes over a connection that many share. */
function pass(from: Member, to: Member): Promise<PeerReply> {
  return from.client.request({
    node: to.node,
    method: 'POST',
    path: '/',
    headers: {},
    body: 'x',
    as: 'caller',
    timeoutMs: 20_000,
  });
}

const textOf = ({ body }: PeerReply): string => Buffer.from(body).toString();

/** All call all without an end, several at a time; `done` ends that with what failed. */
function traffic(members: readonly Member[]) {
  const failed: string[] = [];
  let calls = 0;
  let isOver = false;
  const pairs = members.flatMap((from) => members.filter((to) => to !== from).map((to) => [from, to] as const));
  const loops = pairs.map(async ([from, to]) => {
    while (!isOver) {
      calls++;
      await (calls % 2 === 0 ? call : pass)(from, to).then(
        ({ status }) => {
          if (status !== 200) failed.push(`${status} from ${nodeKey(to.node)}`);
        },
        (error: Error) => failed.push(error.message),
      );
    }
  });
  return {
    /** When each pair has made some calls more. */
    async some(): Promise<void> {
      const until = calls + 5 * pairs.length;
      while (calls < until) await call(members[0]!, members[1]!);
    },
    async done(): Promise<string[]> {
      isOver = true;
      await Promise.all(loops);
      return failed;
    },
  };
}

describe('a rolling change of certificates', () => {
  test.each([
    ['with another common name', 'other.parcels.test', null, null] as const,
    [
      'with another common name under a wildcard',
      'n2.db.parcels.test',
      '*.db.parcels.test',
      '*.db.parcels.test',
    ] as const,
    ['from a name to a wildcard', 'n2.db.parcels.test', null, '*.db.parcels.test'] as const,
  ])('%s fails no call', async (_what, newName, oldReserved, newReserved) => {
    const oldName = oldReserved === null ? 'node.parcels.test' : 'n1.db.parcels.test';
    const all = await Promise.all(
      [1, 2, 3].map(async () =>
        member(await certificates(await issueNode(root, oldName), [root], oldReserved), 600_000),
      ),
    );
    const going = traffic(all);
    await going.some();
    for (const one of all) {
      const next = await issueNode(root, newName);
      one.reload(await certificates(next, [root], newReserved));
      await going.some();
      // New connections have the new certificate at once: those of clients to it, and its own to members that know the
      // new name already.
      expect(textOf(await call(one === all[0] ? all[1]! : all[0]!, one))).toMatch(/^[0-9A-F]+$/);
    }
    expect(await going.done()).toEqual([]);
  });

  test('to another authority, whose root all trust before, fails no call', async () => {
    const all = await Promise.all(
      [1, 2, 3].map(async () => member(await certificates(await issueNode(root)), 600_000)),
    );
    const going = traffic(all);
    await going.some();
    for (const name of ['roots', 'certificates', 'the old root goes']) {
      for (const one of all) {
        const set =
          name === 'roots'
            ? await certificates(await issueNode(root), [root, newRoot])
            : name === 'certificates'
              ? await certificates(await issueNode(newRoot, 'new.parcels.test'), [root, newRoot])
              : await certificates(await issueNode(newRoot, 'new.parcels.test'), [newRoot]);
        one.reload(set);
        await going.some();
      }
    }
    expect(await going.done()).toEqual([]);
  });
});

test('new connections have the new certificate at once; where it is known, nothing is sent with the old one any more', async () => {
  const [one, other] = [
    await member(await certificates(await issueNode(root), [root], 'node.parcels.test'), 0),
    await member(await certificates(await issueNode(root), [root], 'node.parcels.test'), 0),
  ];
  await call(one, other);
  const next = await issueNode(root);
  other.seen.clear();
  one.reload(await certificates(next, [root], 'node.parcels.test'));
  await call(one, other);
  expect([...other.seen]).toEqual([next.parsed.serialNumber.toUpperCase()]);
  // The same once more changes nothing.
  expect(textOf(await call(other, one))).toBe(next.parsed.serialNumber.toUpperCase());
});

test('the former certificate and the former name are of use for as long as connections live, and not longer', async () => {
  const oldSet = await certificates(await issueNode(root));
  const newSet = await certificates(await issueNode(root, 'other.parcels.test'));
  const [one, other] = [await member(oldSet, 0, 60), await member(oldSet, 0, 60)];
  one.reload(newSet);
  // The other one knows the old name only, and this one shows the old certificate to it: for a while.
  let last = 200;
  for (let i = 0; last === 200 && i < 1_000_000; i++) last = (await call(one, other)).status;
  expect(last).toBe(401);
  // Without time for former names the old one is not known at once; what it still has is told.
  expect((await call(other, one)).status).toBe(401);
  other.reload(newSet);
  expect([(await call(one, other)).status, (await call(other, one)).status]).toEqual([200, 200]);
});

test('a member whose certificate is not from our roots, or for another host, is not asked anything', async () => {
  const mine = await member(await certificates(await issueNode(root)), 0);
  const strangers = await issueRoot('Strangers');
  const foreign = await member(await certificates(await issueNode(strangers), [strangers]), 0);
  const elsewhere = await member(
    await certificates(
      await issue({ commonName: 'node.parcels.test', by: root, dns: ['n9.parcels.test'], usages: NODE_USAGES }),
    ),
    0,
  );
  for (const to of [foreign, elsewhere]) {
    await expect(call(mine, to)).rejects.toMatchObject({ code: 'member_unreachable', data: { reason: 'certificate' } });
    expect(to.seen.size).toBe(0);
  }
  const knowing = new PeerClient({
    certificates: await certificates(await issueNode(root)),
    secret: null,
    namesOf: (_, port) => (port === elsewhere.node.port ? ['n9.parcels.test'] : []),
  });
  onTestFinished(() => knowing.close());
  expect((await call({ ...mine, client: knowing }, elsewhere)).status).toBe(200);
});

test('without named roots nobody could be proved to be a member', async () => {
  const set = await certificates(await issueNode(root));
  expect(() => new PeerClient({ certificates: { ...set, trustsNodes: false }, secret: null })).toThrow(
    expect.objectContaining({ code: 'certificate_invalid' }),
  );
});

describe('a certificate', () => {
  const cases: [string, string | null, readonly string[], readonly string[], readonly string[], boolean][] = [
    ['names the host', 'x', ['n1.parcels.test'], [], ['N1.parcels.test'], true],
    ['names another one', 'x', ['n1.parcels.test'], [], ['n2.parcels.test'], false],
    ['names one of the other names', 'x', ['n1.parcels.test'], [], ['10.0.0.1', 'n1.parcels.test'], true],
    ['names the address', 'x', [], ['10.0.0.1'], ['10.0.0.1'], true],
    ['names an address as a host, which it is not', 'x', ['10.0.0.1'], [], ['10.0.0.1'], false],
    ['has a wildcard for the first label', 'x', ['*.parcels.test'], [], ['n1.parcels.test'], true],
    ['has one that stands for one label only', 'x', ['*.parcels.test'], [], ['a.n1.parcels.test'], false],
    ['has one that stands for a whole label only', 'x', ['n*.parcels.test'], [], ['n1.parcels.test'], false],
    ['has one of two labels', 'x', ['*.test'], [], ['parcels.test'], false],
    ['has its name as the common name only', 'n1.parcels.test', [], [], ['n1.parcels.test'], true],
    [
      'has alternative names beside the common one',
      'n1.parcels.test',
      ['n2.parcels.test'],
      [],
      ['n1.parcels.test'],
      false,
    ],
    ['has an address beside the common name', 'n1.parcels.test', [], ['10.0.0.1'], ['n1.parcels.test'], false],
    ['names a host with letters beyond ASCII', 'x', ['xn--bcher-kva.parcels.test'], [], ['bücher.parcels.test'], true],
  ];
  test.each(cases)('that %s', async (_what, commonName, dns, ips, names, isFor) => {
    const { cert } = await issue({ commonName, by: root, dns, ips, usages: NODE_USAGES });
    expect(identityProblem(new X509Certificate(cert), names) === undefined).toBe(isFor);
  });
});
