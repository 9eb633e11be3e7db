import type { AuditEntry } from '../../../core/ports/audit.ts';
import { securedGrpc } from '../../grpc/harness.ts';
import type { FlatContext } from '../../support/app-context.ts';
import { FakeNode } from '../../support/fake-node.ts';

/** gRPC with users and a node around it, and what the audit is told of anything but logins. */
export function audited(context: Partial<FlatContext> = {}) {
  const entries: AuditEntry[] = [];
  const node = new FakeNode();
  const h = securedGrpc({
    node,
    audit: {
      record: (entry) => {
        if (entry.action !== 'login') entries.push(entry);
      },
    },
    ...context,
  });
  return { ...h, node, entries, told: () => entries.map(({ action, outcome, target }) => [action, outcome, target]) };
}
