import { createApp } from '../../../handlers/app.ts';
import { httpHandler } from './http-function.ts';
import { commonContext, openFunctionStore, openSecurity } from './open-store.ts';

/** Streams, decisions on what they hold, checkpoints of their readers, health and what describes the interface. */
const PATHS = /^\/(?:streams(?:\/.*)?|checkpoint|dcb\/.*|health\/.*|ping|info|openapi\.json)?$/;

export const handler = httpHandler({
  serves: (path) => PATHS.test(path),
  open: async (call) => {
    const opened = await openFunctionStore(call);
    const security = await openSecurity(opened);
    return {
      fetch: createApp({ ...commonContext(opened), security, scavenger: null }),
      settled: () => opened.settled(),
    };
  },
});
