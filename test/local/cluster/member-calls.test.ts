import { describe, expect, onTestFinished, test } from 'vitest';
import { ADMIN_REPLY_BYTES_MAX } from '../../../core/ports/admin-calls.ts';
import { adminCallsOf } from '../../../local/cluster/member-calls.ts';
import { PeerClient } from '../../../local/cluster/peer-client.ts';
import type { CertificateSet } from '../../../local/tls/certificate-set.ts';
import { loadConfigured } from '../../../local/tls/load-certificates.ts';
import { issueNode, issueRoot } from '../../support/certificates.ts';
import { CLUSTER_SECRET } from '../../support/fake-cluster.ts';
import { Files } from '../tls/files.ts';
import { serve } from '../tls/clients.ts';

/** Parts of a member over its connections to another one. */

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
  return loadConfigured(
    {
      CertificateFile: files.path('node.crt'),
      CertificatePrivateKeyFile: files.path('node.key'),
      CertificatePassword: null,
      CertificatePrivateKeyPassword: null,
      TrustedRootCertificatesPath: files.path('roots'),
      CertificateReservedNodeCommonName: null,
    },
    Date.now(),
  );
}

describe('the admin interface', () => {
  // Scenario 86 of auto-scavenge. Whether TLS is on is one option here, and not two.
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
    expect(seen).toEqual([
      `POST ${scheme}://127.0.0.1:N/admin/scavenge?attempt=1 application/json`,
      `DELETE ${scheme}://127.0.0.1:N/admin/scavenge/current application/json`,
    ]);
  });

  test('an answer that is too long is none', async () => {
    const server = await serve({ fetch: () => new Response('x'.repeat(ADMIN_REPLY_BYTES_MAX + 1)) });
    await expect(adminCallsOf(client()).request(nodeOf(server), 'GET', '/', 10_000)).rejects.toMatchObject({
      code: 'member_refused',
    });
  });
});
