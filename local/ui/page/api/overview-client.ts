import { poller } from './polled.ts';
import type { Polled } from './polled.ts';
import type { OverviewView } from '../../../../handlers/documents/node.ts';

const PATH = '/admin/overview';

export function overview(): Polled<OverviewView> & { use(everyMs: number): () => void } {
  return poller<OverviewView>(PATH);
}
