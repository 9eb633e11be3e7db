import { describe, expect, onTestFinished, test } from 'vitest';
import type { ClusterMember } from '../../../core/cluster/api.ts';
import { ADMIN_REPLY_BYTES_MAX } from '../../../core/ports/admin-calls.ts';
import { ANY } from '../../../core/streams/api.ts';
import { adminCallsOf, memberAppendsOf } from '../../../local/cluster/member-calls.ts';
import { readBody } from '../../../local/http/request.ts';
import { PeerClient } from '../../../local/cluster/peer-client.ts';
import type { CertificateSet } from '../../../local/tls/certificate-set.ts';
import { loadConfigured } from '../../../local/tls/load-certificates.ts';
import { issueNode, issueRoot } from '../../support/certificates.ts';
import { CLUSTER_SECRET, fakeCluster } from '../../support/fake-cluster.ts';
import { event } from '../../cluster/copy/kit.ts';
import { harness } from '../../handlers/harness.ts';
import { Files } from '../tls/files.ts';
import { serve } from '../tls/clients.ts';

/** Parts of a member over its connections to another one, with the real handlers behind them. */

function client(certificates: CertificateSet | null = null): PeerClient {
  const made = new PeerClient({ certificates, secret: CLUSTER_SECRET });
  onTestFinished(() => made.close());
  return made;
}

const nodeOf = ({ port }: { readonly port: number }) => ({ address: '127.0.0.1', port });

async function certificates(): Promise<CertificateSet> {
  const root = await issueRoot();
  const node = await issueNode(root);
  const files = await Files.of({ 'node.crt': node.cert, 'node.key': node.key, 'roots/ca.crt': root.cert });
  return loadConfigured({
    CertificateFile: files.path('node.crt'), CertificatePrivateKeyFile: files.path('node.key'), CertificatePassword: null, CertificatePrivateKeyPassword: null,
    TrustedRootCertificatesPath: files.path('roots'), CertificateReservedNodeCommonName: null,
  }, Date.now());
}

describe('the admin interface', () => {
  // auto-scavenge.md section 16, row 86. Whether TLS is on is one option here, and not two.
  test.each(['http', 'https'] as const)('86: orders and questions go by %s', async (scheme) => {
    const set = scheme === 'https' ? await certificates() : null;
    const seen: string[] = [];
    const server = await serve({
      ...(set !== null && { tls: { certificates: set } }),
      fetch: (request) => {
        seen.push(`${request.method} ${request.url.replace(/\d{4,5}/, 'N')} ${request.headers.get('accept')}`);
        return new Response('{"code":"late_order"}', { status: 409 });
      },
    });
    const calls = adminCallsOf(client(set));
    const { status, body } = await calls.request(nodeOf(server), 'POST', '/admin/scavenge?attempt=1', 10_000);
    expect([status, new TextDecoder().decode(body)]).toEqual([409, '{"code":"late_order"}']);
    await calls.request(nodeOf(server), 'DELETE', '/admin/scavenge/current', 10_000);
    expect(seen).toEqual([`POST ${scheme}://127.0.0.1:N/admin/scavenge?attempt=1 application/json`, `DELETE ${scheme}://127.0.0.1:N/admin/scavenge/current application/json`]);
  });

  test('an answer that is too long is none', async () => {
    const server = await serve({ fetch: () => new Response('x'.repeat(ADMIN_REPLY_BYTES_MAX + 1)) });
    await expect(adminCallsOf(client()).request(nodeOf(server), 'GET', '/', 10_000)).rejects.toMatchObject({ code: 'member_refused' });
  });
});

describe('appends at the leader', () => {
  async function leader() {
    const cluster = fakeCluster();
    const h = harness({ cluster, readBody });
    const server = await serve({ fetch: h.app });
    const member = { node: nodeOf(server), instanceId: 'x' } as ClusterMember;
    const appends = memberAppendsOf(client());
    return { ...h, cluster, member, append: (stream: string, expectedVersion: number) => appends.append(member, { stream, expectedVersion, events: [event('$scavengeStarted', '{\n  "a": "\u00e9"\n}')], atMs: null }, 10_000) };
  }

  test('are there byte for byte, and answered like appends', async () => {
    const { append, store } = await leader();
    expect(await append('$scavenges', -1)).toMatchObject({ firstEventNumber: 0, lastEventNumber: 0, isRepeat: false });
    const { events } = await store.readStream('$scavenges', { direction: 'forward', from: 0, count: 1 });
    expect(new TextDecoder().decode(events[0]!.data)).toBe('{\n  "a": "\u00e9"\n}');
  });

  test('are refused with the codes of appends', async () => {
    const { append, store, cluster } = await leader();
    await append('s', ANY);
    await expect(append('s', 7)).rejects.toMatchObject({ code: 'wrong_expected_version' });
    await expect(append('', ANY)).rejects.toMatchObject({ code: 'invalid_stream_name' });
    await store.deleteStream('s', ANY, 'hard');
    await expect(append('s', ANY)).rejects.toMatchObject({ code: 'stream_deleted' });
    cluster.membership.isLeader = false;
    await expect(append('t', ANY)).rejects.toMatchObject({ code: 'not_leader' });
  });

  test.each([[500, '{"code":"internal"}'], [401, ''], [200, '{}'], [200, 'x'], [200, '{"firstEventNumber":1}'], [404, '<html>']])('any other answer, such as %i %s, is no append', async (status, body) => {
    const server = await serve({ fetch: () => new Response(body, { status }) });
    await expect(memberAppendsOf(client()).append({ node: nodeOf(server) } as ClusterMember, { stream: 's', expectedVersion: ANY, events: [event('t')], atMs: null }, 10_000)).rejects.toMatchObject({ code: 'member_refused' });
  });

  test('where nobody listens nothing has arrived', async () => {
    const { member, append } = await leader();
    Object.assign(member, { node: { address: '127.0.0.1', port: 1 } });
    await expect(append('s', ANY)).rejects.toMatchObject({ code: 'member_unreachable', data: { reason: 'refused' } });
  });
});

test('only members append at another one', async () => {
  const { secured, AS } = await import('../../handlers/secured.ts');
  const h = secured({ cluster: fakeCluster() });
  const body = JSON.stringify({ stream: '$users', expectedVersion: -2, events: [{ id: '00000000-0000-4000-8000-0000000000aa', type: 't', isJson: true, data: '{}', metadata: '' }] });
  const send = (headers: Record<string, string>) => h.send('POST', '/cluster/append', { 'content-type': 'application/json', ...headers }, body);
  expect([(await send({})).status, (await send(AS.admin)).status, (await send({ authorization: `Cluster ${CLUSTER_SECRET}` })).status]).toEqual([401, 403, 200]);
});
