import { expect, test } from 'vitest';
import { all, failure } from '../nodes.ts';
import { numbered } from './suite.ts';
import type { Suite } from './suite.ts';

/** Who calls, and what that one may: over TLS only, as these clients send credentials nowhere else. */
export function securityTests({ lib, node, client, stream }: Suite): void {
  const denied = async (what: Promise<unknown> | AsyncIterable<unknown>): Promise<string> =>
    (await failure(what)).constructor.name;

  test('credentials of the connection string, of a call, wrong ones and none', async () => {
    const name = stream();
    await client().appendToStream(name, numbered(lib, 1));
    const nobody = node().client(lib, { credentials: '' });
    expect(await denied(nobody.readStream(name))).toBe('AccessDeniedError');
    expect(await denied(nobody.appendToStream(name, numbered(lib, 1)))).toBe('AccessDeniedError');
    expect(await all(nobody.readStream(name, { credentials: { username: 'ops', password: 'changeit' } }))).toHaveLength(
      1,
    );
    const wrong = node().client(lib, { credentials: 'admin:wrong@' });
    expect(await denied(wrong.readStream(name))).toBe('AccessDeniedError');
    expect(await denied(wrong.appendToStream(name, numbered(lib, 1)))).toBe('AccessDeniedError');
    expect(await all(client().readStream(name))).toHaveLength(1);
  });

  test('access lists hold, for reads, writes, deletes and subscriptions', async () => {
    const name = stream();
    const ops = { credentials: { username: 'ops', password: 'changeit' } };
    await client().appendToStream(name, numbered(lib, 1));
    await client().setStreamMetadata(name, {
      acl: {
        readRoles: ['$admins'],
        writeRoles: ['$admins'],
        deleteRoles: ['$admins'],
        metaReadRoles: ['$admins'],
        metaWriteRoles: ['$admins'],
      },
    });
    expect(await denied(client().readStream(name, ops))).toBe('AccessDeniedError');
    expect(await denied(client().appendToStream(name, numbered(lib, 1), ops))).toBe('AccessDeniedError');
    expect(await denied(client().deleteStream(name, ops))).toBe('AccessDeniedError');
    expect(await denied(client().tombstoneStream(name, ops))).toBe('AccessDeniedError');
    expect(await denied(client().getStreamMetadata(name, ops))).toBe('AccessDeniedError');
    expect(await denied(client().setStreamMetadata(name, {}, ops))).toBe('AccessDeniedError');
    expect(await denied(client().subscribeToStream(name, ops))).toBe('AccessDeniedError');
    expect(await denied(client().subscribeToAll(ops))).toBe('AccessDeniedError');
    expect(await denied(client().readAll(ops))).toBe('AccessDeniedError');
    expect(await all(client().readStream(name))).toHaveLength(1);
  });

  test('a node whose certificate is not vouched for is not talked to', async () => {
    const strange = lib.KurrentDBClient.connectionString(
      `esdb://admin:changeit@localhost:${node().port}?maxDiscoverAttempts=1&defaultDeadline=3000`,
    );
    expect((await failure(strange.appendToStream(stream(), numbered(lib, 1)))).message).toMatch(
      /certificate|UNAVAILABLE|No connection|deadline/i,
    );
    await strange.dispose();
  });
}
