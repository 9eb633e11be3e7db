import { expect, test } from 'vitest';
import type { Membership } from '../../../core/cluster/api.ts';
import type { MemberStore } from '../../../core/cluster/replica/replica.ts';
import { ClusterNode } from '../../../local/node/cluster-node.ts';
import type { NodeControlParts } from '../../../local/node/control.ts';

test('a member that lost its bucket is not ready, and yet does not start again', () => {
  const node = new ClusterNode({ startUpWork: () => null } as unknown as NodeControlParts);
  const log = { isCaughtUp: false, trouble: { code: 'storage_unreachable' }, lag: { bytes: 20 }, end: 100 };
  node.joined(
    { log } as unknown as MemberStore,
    { refusal: null } as unknown as Membership & { readonly refusal: Error | null },
  );
  expect(node.startUpWork()).toMatchObject({ phase: 'storage_unreachable', bytesDone: 100, bytesTotal: 120 });
  expect(node.isStarting).toBe(false);
});
