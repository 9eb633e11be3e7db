import { SkuaError } from '../../../core/base/errors.ts';
import { ANONYMOUS } from '../../../core/base/principal.ts';
import { receiveWebhook, webhookFailure } from '../../../handlers/connectors/webhook-routes.ts';
import { PLAIN } from '../../../handlers/http/branches.ts';
import { appOf } from '../../../handlers/http/context.ts';
import type { App, AppContext, Branch, Call, Reply } from '../../../handlers/http/context.ts';
import { empty, webResponse } from '../../../handlers/http/reply.ts';
import { functionOf } from '../paths.ts';
import { httpHandler } from './http-function.ts';
import { commonContext, openedOrClosed, openFunctionStore } from './open-store.ts';
import { openWebhooks } from './function-webhooks.ts';

/** Where senders deliver. */
export const handler = httpHandler({
  serves: (path) => functionOf(path) === 'webhook',
  hasNoErrorBodies: true,
  open: async (call) => {
    const opened = await openFunctionStore(call, { hasUsers: false });
    const webhooks = await openedOrClosed(opened, openWebhooks(opened, call.deadline));
    return {
      fetch: createWebhookApp({ ...commonContext(opened), security: null, scavenger: null, features: { webhooks } }),
      settled: () => opened.settled(),
    };
  },
});

const PATH = /^\/webhook\/([^/]+)$/;
const METHODS = 'POST, OPTIONS';
const BRANCH: Branch = { ...PLAIN, fail: webhookFailure, isForSenders: true };

/**
 * The one route of senders without all the others: senders have signatures and no users, so that no logins have to be
 * loaded, and a cold start is what a sender waits for. Of access lists those are read that say where a connector may
 * write.
 */
function createWebhookApp(context: AppContext): (request: Request) => Promise<Response> {
  const app = appOf(context);
  return async (request) => webResponse(await answer(request, app));
}

async function answer(request: Request, app: App): Promise<Reply> {
  const { origin, pathname } = new URL(request.url);
  const connector = PATH.exec(pathname)?.[1];
  const call: Call = {
    request,
    method: request.method,
    url: request.url,
    origin,
    path: pathname,
    branch: BRANCH,
    params: connector === undefined ? {} : { connector },
    query: {},
    methods: '',
    principal: ANONYMOUS,
    entered: null,
    countedAs: null,
    session: null,
    base: null,
    audited: null,
    forwarded: null,
    guard: null,
    isLong: false,
    body: null,
  };
  try {
    if (connector === undefined) throw new SkuaError('not_found', `There is nothing at ${pathname}.`);
    call.methods = METHODS;
    if (call.method === 'OPTIONS') return empty(call, 200, 'OK');
    if (call.method !== 'POST')
      throw new SkuaError('method_not_allowed', `${call.method} is not supported here. Use ${METHODS}.`);
    return await receiveWebhook(call, app);
  } catch (error) {
    return webhookFailure(error, call, app);
  }
}
