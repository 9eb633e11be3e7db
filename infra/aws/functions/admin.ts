import { createAutoScavenge } from '../../../core/auto-scavenge/auto-scavenge.ts';
import { DryRuns } from '../../../core/shared-log/dry-runs/dry-runs.ts';
import { createObjectNodes, OF_CLUSTER } from '../../../core/shared-log/control/control.ts';
import { createApp } from '../../../handlers/app.ts';
import { newTemporaryStorage } from '../../runtime/temporary-storage.ts';
import { createSchedule } from '../../cron-schedule.ts';
import { functionOf } from '../paths.ts';
import { autoScavengeConfig, scavengeConfig } from './function-settings.ts';
import { httpHandler } from './http-function.ts';
import { commonContext, objectLogOptions, openedOrClosed, openFunctionStore, openSecurity } from './open-store.ts';
import { openWebhooks } from './function-webhooks.ts';
import { SELF, TickedScavenger } from '../../runtime/scavengers.ts';

/** What is asked of scavenges needs to know how the last tick left them. */
const SCAVENGES = /^\/admin\/scavenge(?:\/|$)/;

const CONNECTORS = /^\/connectors(?:\/|$)/;

/** Users, connectors, scavenges and their schedule. */
export const handler = httpHandler({
  serves: (path) => functionOf(path) === 'admin',
  open: async (call) => {
    const opened = await openFunctionStore(call);
    const security = await openSecurity(opened);
    const { world, store, settings, instance } = opened;
    const dryRuns = new DryRuns({
      world,
      instance,
      newTemporaryStorage,
      options: objectLogOptions(settings),
      config: scavengeConfig(settings),
    });
    const scavenger = new TickedScavenger(world, call.deadline, dryRuns);
    const config = autoScavengeConfig(settings, world);
    const autoScavenge = createAutoScavenge(
      { ...world, store, nodes: createObjectNodes({ world, store, self: SELF }), schedule: createSchedule() },
      { ...config, isOff: () => (instance.isCluster ? OF_CLUSTER : config.isOff()) },
    );
    const webhooks = await openedOrClosed(opened, openWebhooks(opened, call.deadline));
    const app = createApp({ ...commonContext(opened), security, scavenger, features: { webhooks, autoScavenge } });
    return {
      fetch: async (request) => {
        const { pathname } = new URL(request.url);
        if (SCAVENGES.test(pathname)) await scavenger.refresh();
        if (CONNECTORS.test(pathname)) await webhooks?.resume();
        return app(request);
      },
      settled: () => opened.settled(),
    };
  },
});
