import { connect } from '../../../local/client/index.ts';
import { openStore } from '../../../local/embedded/index.ts';
import * as events from '../../../local/events/index.ts';
import { startTestNode } from '../../../local/testing/index.ts';
import { typedEventsTests } from './suite.ts';

typedEventsTests(
  'a store of this process',
  async () => {
    const store = await openStore({ memory: true });
    return {
      store,
      redact: (stream, version) => store.redact(stream, { events: [version], reason: 'asked for' }),
      close: () => store.close(),
    };
  },
  events,
);

typedEventsTests(
  'a node that is called',
  async () => {
    const node = await startTestNode();
    const store = connect({ url: node.url });
    return {
      store,
      redact: (stream, version) => node.store.redact(stream, { events: [version], reason: 'asked for' }),
      close: async () => {
        await store.close();
        await node.stop();
      },
    };
  },
  events,
);
