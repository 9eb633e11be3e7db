import { SkuaError } from '../core/errors.ts';
import { readBody } from './body.ts';
import type { App, Call } from './context.ts';

/** Largest body of POST `/auto-scavenge/configure`. */
export const SCHEDULE_BODY_BYTES_MAX = 16_384;

const JSON_TYPE = /^\s*application\/json\s*(?:;\s*charset\s*=\s*"?utf-?8"?\s*)?$/i;
const utf8 = new TextDecoder('utf-8', { fatal: true });

/** The schedule in the body; texts of refusals as in auto-scavenge.md section 3.3. Names are case-sensitive. */
export async function scheduleOf(call: Call, app: App): Promise<string> {
  const contentType = call.request.headers.get('content-type');
  if (contentType === null || !JSON_TYPE.test(contentType)) {
    throw new SkuaError('unsupported_media_type', `Content-Type '${(contentType ?? '').slice(0, 100)}' is not understood here. Send application/json in UTF-8.`);
  }
  const body = parsed(await readBody(call, app, Math.min(SCHEDULE_BODY_BYTES_MAX, app.options.bodyBytesMax)));
  if (body === null) throw new SkuaError('bad_json', 'Invalid payload', { hint: 'Send an object with a schedule, such as {"schedule": "30 2 * * 0"}.' });
  if (typeof body !== 'object' || !Object.hasOwn(body, 'schedule')) {
    throw new SkuaError('bad_json', 'The body must be a JSON object with the member schedule, spelt like this, such as {"schedule": "30 2 * * 0"}.');
  }
  const { schedule } = body as { readonly schedule: unknown };
  if (typeof schedule !== 'string') throw new SkuaError('invalid_schedule', 'CRON expression can only be a string');
  return schedule;
}

function parsed(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(utf8.decode(bytes));
  } catch {
    throw new SkuaError('bad_json', 'The body is no valid JSON in UTF-8.');
  }
}
