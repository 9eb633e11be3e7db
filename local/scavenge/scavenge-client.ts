import type {
  DryRunDocument,
  ExplanationDocument,
  LastDocument,
  ProgressDocument,
  StartedDocument,
} from '../../handlers/documents/scavenging.ts';
import type { EmbeddedEntryDocument, PageDocument } from '../../handlers/documents/streams.ts';
import { AnswerError, expectStatus } from '../cli/node-client.ts';
import type { NodeClient } from '../cli/node-client.ts';
import { readCompletion } from './completion.ts';
import type { Completion } from './completion.ts';

/** A document, and its text: numbers beyond 2^53 survive only there. */
export interface Document<T> {
  readonly text: string;
  readonly value: T;
}

const PATH = '/admin/scavenge';

/** The scavenge routes of a node. */
export class ScavengeClient {
  readonly #node: NodeClient;

  constructor(node: NodeClient) {
    this.#node = node;
  }

  /** Rejects with `scavenge_in_progress` (status 409) while another one is active. */
  async start(query: URLSearchParams): Promise<StartedDocument> {
    const path = query.size === 0 ? PATH : `${PATH}?${query}`;
    return (await this.#json<StartedDocument>('POST', path, 'starting a scavenge')).value;
  }

  /** Resolves when the run has stopped. */
  async stop(scavengeId: string, signal: AbortSignal): Promise<string> {
    const response = await this.#node.call('DELETE', `${PATH}/${encodeURIComponent(scavengeId)}`, { signal });
    return JSON.parse(await expectStatus(response, [200], 'stopping the scavenge')) as string;
  }

  /** Null when none is active. */
  progress(): Promise<Document<ProgressDocument> | null> {
    return this.#json<ProgressDocument>('GET', `${PATH}/progress`, 'reading the progress').catch((error: unknown) => {
      if (error instanceof AnswerError && error.code === 'scavenge_not_found') return null;
      throw error;
    });
  }

  last(): Promise<Document<LastDocument>> {
    return this.#json<LastDocument>('GET', `${PATH}/last`, 'reading the result of the last scavenge');
  }

  /** Null while it is active. */
  async dryRun(scavengeId: string): Promise<Document<DryRunDocument> | null> {
    const response = await this.#node.call('GET', `${PATH}/dry-run/${encodeURIComponent(scavengeId)}`);
    const text = await expectStatus(response, [200, 202], 'reading the report of the dry run');
    return response.status === 202 ? null : { text, value: JSON.parse(text) as DryRunDocument };
  }

  explain(stream: string): Promise<Document<ExplanationDocument>> {
    return this.#json<ExplanationDocument>(
      'GET',
      `${PATH}/explain/${encodeURIComponent(stream)}`,
      `explaining ${stream}`,
    );
  }

  async #json<T>(method: string, path: string, what: string): Promise<Document<T>> {
    const text = await expectStatus(await this.#node.call(method, path), [200], what);
    return { text, value: JSON.parse(text) as T };
  }
}

/** Looks a run's completion up. */
export type CompletionReader = (scavengeId: string) => Promise<Completion>;

/** Reads the history of a running node. A user who may not read it learns nothing from it. */
export function completionOfNode(node: NodeClient): CompletionReader {
  return (scavengeId) =>
    readCompletion(async (count) => {
      const response = await node.call(
        'GET',
        `/streams/%24scavenges/${encodeURIComponent(scavengeId)}/head/${count}?embed=body`,
        { headers: { accept: 'application/json' } },
      );
      if (!response.ok) return [];
      const { entries } = (await response.json()) as PageDocument<EmbeddedEntryDocument>;
      return entries.map(({ eventType, data }) => ({ type: eventType, data: data ?? '' }));
    });
}
