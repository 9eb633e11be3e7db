import { httpHandler } from './http-function.ts';
import { noScavenger } from './no-scavenger.ts';
import { commonContext, openFunctionStore } from './open-store.ts';
import { openWebhooks } from './open-webhooks.ts';
import { createWebhookApp } from './webhook-app.ts';

/** Where senders deliver. */
export const handler = httpHandler({
  serves: (path) => path.startsWith('/webhook/'),
  open: async (call) => {
    const opened = await openFunctionStore(call);
    const webhooks = openWebhooks(opened, call.deadline);
    return { fetch: createWebhookApp({ ...commonContext(opened), security: null, scavenger: noScavenger, webhooks }), settled: () => opened.store.settled() };
  },
});
