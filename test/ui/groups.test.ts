import { expect, test } from 'vitest';
import type { GroupMembers } from '../../handlers/documents/subscriptions.ts';
import { lagOf, statusOf } from '../../local/ui/page/views/subscriptions/groups.ts';

test('a group that nobody takes from is neither live nor catching up', () => {
  expect(statusOf('Live', 0)).toMatchObject({ word: 'No consumers', tone: 'plain' });
  expect(statusOf('Behind,OutstandingPageRequest', 0)).toMatchObject({ word: 'No consumers', tone: 'plain' });
  expect(statusOf('Live,OutstandingPageRequest', 1)).toMatchObject({ word: 'Live', tone: 'ok' });
  expect(statusOf('Behind', 2)).toMatchObject({ word: 'Catching up', tone: 'info' });
  expect(statusOf('NotReady', 0)).toMatchObject({ word: 'Not ready', tone: 'warn' });
});

test('how far a group is behind that has not read to the end is a least number', () => {
  const group = { lastCheckpointedEventPosition: null, lastKnownEventPosition: '31' } as GroupMembers;
  expect(lagOf({ ...group, status: 'Behind' }, '0')).toEqual({ amount: 32, unit: 'events', isLeast: true });
  expect(lagOf({ ...group, status: 'Live' }, '0')).toEqual({ amount: 32, unit: 'events', isLeast: false });
});
