import type { ScavengeOrders } from '../../../core/auto-scavenge/orders/orders.ts';
import { SkuaError } from '../../../core/base/errors.ts';
import type { AdminReply } from '../../../core/ports/admin-calls.ts';
import { encodeText } from '../../../core/base/text.ts';

type Asked = Pick<ScavengeOrders, 'start' | 'stop' | 'asked' | 'last'>;

/**
 * `/admin/scavenge` of a node as orders reach it: what `handlers/scavenging/scavenge-routes.ts` answers, without the
 * rest of it.
 */
export async function adminReply(orders: Asked, method: string, path: string): Promise<AdminReply> {
  const { pathname, searchParams } = new URL(path, 'http://node');
  const attempt = searchParams.get('attempt');
  const order =
    attempt === null ? null : { clusterScavengeId: searchParams.get('clusterScavengeId')!, attempt: Number(attempt) };
  try {
    if (method === 'POST') return reply(200, { scavengeId: (await orders.start(order!)).scavengeId });
    if (method === 'DELETE') {
      const asked = pathname.split('/').at(-1)!;
      return reply(200, { scavengeId: await orders.stop(order!, asked === 'current' ? null : asked) });
    }
    if (order !== null) orders.asked(order);
    const last = orders.last();
    return reply(200, {
      scavengeId: last?.scavengeId ?? '00000000-0000-0000-0000-000000000000',
      scavengeResult: last?.result ?? 'Unknown',
    });
  } catch (error) {
    if (!(error instanceof SkuaError)) throw error;
    return reply(error.code === 'scavenge_not_found' ? 404 : 409, { code: error.code, seen: error.data['seen'] });
  }
}

function reply(status: number, value: object): AdminReply {
  return { status, body: encodeText(JSON.stringify(value)) };
}
