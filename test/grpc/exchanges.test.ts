import { expect, test } from 'vitest';
import { isOfWholeNode, listedDeviations, tellUnlisted } from './deviations.ts';
import { clientOf } from './harness.ts';
import { replayed } from './recorded/node.ts';

/** What only a connection decides: deadlines, the length of a message, and how a node that stops ends what is open. */
const OF_CONNECTIONS = /^(deadline: |append: (16 MiB|17 MiB|32 MiB|deadline)|batch: oversized|shutdown: )/;

test('the recorded calls are answered as recorded, but for what is listed with its reason', async () => {
  const { differences, compared, absent } = await replayed((grpc) => {
    const client = clientOf(grpc);
    return {
      open: (path, metadata) => client.open(path, [], { metadata, isOpen: true }),
      plays: ({ name }) => !OF_CONNECTIONS.test(name),
      close: async () => {},
    };
  });
  const listed = listedDeviations((name) => !isOfWholeNode(name));
  tellUnlisted(differences, listed);
  console.log(`${compared} calls compared, ${differences.size} deviate`);
  expect(compared).toBe(522);
  expect([...absent]).toEqual([]);
  expect(Object.fromEntries(differences)).toEqual(Object.fromEntries(listed));
});
