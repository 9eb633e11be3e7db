import { segment, TEXT } from './openapi-parts.ts';
import type { OperationDoc, ResponseDoc } from './route.ts';

/** The OpenAPI document of the webhook endpoint (http-api.md section 10). None of its replies has a body. */

function status(description: string): ResponseDoc {
  return { description };
}

const FAILURES: Readonly<Record<number, string>> = { 401: 'Credentials were sent, and they are wrong.', 429: 'Too many failed logins.', 500: 'The request failed inside the server.', 503: 'The node can not take it now.' };

/** What every operation can answer, without the body that other operations have. */
export function webhookFailures(...statuses: readonly number[]): Readonly<Record<number, ResponseDoc>> {
  return Object.fromEntries(statuses.map((each) => [each, status(FAILURES[each]!)]));
}

export const WEBHOOK_DOC: OperationDoc = {
  summary: 'Deliver a webhook call',
  description: 'The routing script of the connector names the stream that the body is written to. Calls are authenticated by the sender\'s signature, where the connector asks for one.',
  parameters: [segment('connector', 'Id of a running connector.', TEXT, 'parcels')],
  body: { required: true, description: 'JSON in UTF-8. It becomes the data of the event as it is.', content: { 'application/json': { example: { resource: 'order', action: 'created' } } } },
  responses: {
    201: status('Written durably, or written before (connectors with `waitForWrite`).'),
    202: status('Accepted, or accepted before.'),
    400: status('The body is empty or no JSON, or the script named no stream.'),
    401: status('The signature is missing, malformed, wrong or too old.'),
    404: status('No connector with this id runs here.'),
    408: status('The body took too long to arrive.'),
    413: status('The body is too long.'),
    415: status('The content type is not JSON.'),
    500: status('The script failed, took too long, or named something that no stream or event type can be.'),
    503: status('Too much is waiting, or the connector is stopping.'),
    504: status('Not written in time. It may yet be (connectors with `waitForWrite`).'),
  },
};
