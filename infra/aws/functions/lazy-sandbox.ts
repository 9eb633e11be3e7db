import type { RoutingLimits, RoutingSandbox } from '../../../core/ports/routing-sandbox.ts';

/** A sandbox whose code, threads and WebAssembly are loaded when the first script is to run. */
export function lazySandbox(limits: RoutingLimits, load: (limits: RoutingLimits) => Promise<RoutingSandbox>): RoutingSandbox {
  let loading: Promise<RoutingSandbox> | null = null;
  const loaded = (): Promise<RoutingSandbox> => {
    loading ??= load(limits).catch((error: unknown) => {
      loading = null;
      throw error;
    });
    return loading;
  };
  return {
    check: async (script) => (await loaded()).check(script),
    route: async (call) => (await loaded()).route(call),
    release(connectorId) { void loading?.then((sandbox) => sandbox.release(connectorId)); },
    close: async () => { await (await loading)?.close(); },
  };
}
