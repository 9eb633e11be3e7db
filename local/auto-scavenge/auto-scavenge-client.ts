import type { EnabledDocument, ScheduleDocument } from '../../handlers/documents/scavenging.ts';
import { CommandError } from '../../infra/runtime/failure.ts';
import { EXIT } from '../../infra/runtime/io.ts';
import type { ExitCode } from '../../infra/runtime/io.ts';
import { AnswerError, expectStatus } from '../cli/node-client.ts';
import type { NodeClient } from '../cli/node-client.ts';

/** GET `/auto-scavenge/status`. Other servers of this interface have the first three members only. */
export type StatusDocument = Pick<ScheduleDocument, 'state' | 'schedule' | 'timeUntilNextCycle'> &
  Partial<ScheduleDocument>;

const PATH = '/auto-scavenge';
/** Refusals whose exit code does not follow from their status. */
const EXIT_CODES: Readonly<Record<string, ExitCode>> = {
  auto_scavenge_off: EXIT.refused,
  auto_scavenge_pausing: EXIT.refused,
  invalid_schedule: EXIT.usage,
};

/** The auto-scavenge routes of a node. */
export class AutoScavengeClient {
  readonly #node: NodeClient;

  constructor(node: NodeClient) {
    this.#node = node;
  }

  enabled(): Promise<EnabledDocument> {
    return this.#get(`${PATH}/enabled`, 'asking whether auto-scavenge is on');
  }

  status(): Promise<StatusDocument> {
    return this.#get(`${PATH}/status`, 'reading the status of auto-scavenge');
  }

  /** Rejects with `invalid_schedule`. */
  async configure(schedule: string): Promise<void> {
    const response = await this.#node.call('POST', `${PATH}/configure`, {
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ schedule }),
    });
    await accepted(response, [200, 202], 'setting the schedule');
  }

  /** Whether everything has stopped already. */
  async pause(): Promise<boolean> {
    const response = await this.#node.call('POST', `${PATH}/pause`);
    await accepted(response, [200, 202], 'pausing auto-scavenge');
    return response.status === 200;
  }

  /** Rejects with `auto_scavenge_pausing`. */
  async resume(): Promise<void> {
    await accepted(await this.#node.call('POST', `${PATH}/resume`), [200, 202], 'resuming auto-scavenge');
  }

  async #get<T>(path: string, what: string): Promise<T> {
    return JSON.parse(await accepted(await this.#node.call('GET', path), [200], what)) as T;
  }
}

async function accepted(response: Response, statuses: readonly number[], what: string): Promise<string> {
  try {
    return await expectStatus(response, statuses, what);
  } catch (error) {
    const exitCode = error instanceof AnswerError ? EXIT_CODES[error.code] : undefined;
    throw exitCode === undefined
      ? error
      : new CommandError((error as AnswerError).code, (error as AnswerError).message, exitCode);
  }
}
