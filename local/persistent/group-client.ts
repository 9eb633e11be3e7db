import type { DetailsDocument, SummaryDocument } from '../../handlers/documents/subscriptions.ts';
import { expectStatus } from '../cli/node-client.ts';
import type { NodeClient } from '../cli/node-client.ts';

/** Other servers of this interface leave it out. */
interface Parked {
  readonly parkedMessageCount?: number;
}
export type SubscriptionSummary = Omit<SummaryDocument, 'parkedMessageCount'> & Parked;
export type SubscriptionDetails = Omit<DetailsDocument, 'parkedMessageCount'> & Parked;

const JSON_TYPE = { accept: 'application/json' };

/** The routes of persistent subscriptions of a node. */
export class SubscriptionsClient {
  readonly #node: NodeClient;

  constructor(node: NodeClient) {
    this.#node = node;
  }

  /** All groups, or those of a stream. */
  list(stream: string | null): Promise<SubscriptionSummary[]> {
    return this.#get(
      stream === null ? '/subscriptions' : `/subscriptions/${encodeURIComponent(stream)}`,
      'asked for its persistent subscriptions',
    );
  }

  info(stream: string, group: string): Promise<SubscriptionDetails> {
    return this.#get(`${pathOf(stream, group)}/info`, 'asked for a persistent subscription');
  }

  /** `stopAt`: only parked messages with numbers below it; null for all. */
  async replayParked(stream: string, group: string, stopAt: number | null): Promise<void> {
    await this.#order(
      'POST',
      `${pathOf(stream, group)}/replayParked${stopAt === null ? '' : `?stopAt=${stopAt}`}`,
      'told to send parked messages again',
    );
  }

  async reset(stream: string, group: string, from: string): Promise<void> {
    await this.#order(
      'POST',
      `${pathOf(stream, group)}/reset?from=${encodeURIComponent(from)}`,
      'told to let a persistent subscription begin anew',
    );
  }

  async restart(): Promise<void> {
    await this.#order('POST', '/subscriptions/restart', 'told to restart its persistent subscriptions');
  }

  async delete(stream: string, group: string): Promise<void> {
    await this.#order('DELETE', pathOf(stream, group), 'told to delete a persistent subscription');
  }

  async #get<T>(path: string, what: string): Promise<T> {
    return JSON.parse(await expectStatus(await this.#node.call('GET', path, { headers: JSON_TYPE }), [200], what)) as T;
  }

  async #order(method: string, path: string, what: string): Promise<void> {
    await expectStatus(await this.#node.call(method, path, { headers: JSON_TYPE }), [200], what);
  }
}

function pathOf(stream: string, group: string): string {
  return `/subscriptions/${encodeURIComponent(stream)}/${encodeURIComponent(group)}`;
}
