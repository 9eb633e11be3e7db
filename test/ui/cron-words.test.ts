import { expect, test } from 'vitest';
import { cronWords } from '../../local/ui/page/views/auto-scavenge/cron-words.ts';

/** Schedules in plain words, as the page shows them. */

test.each([
  ['30 2 * * 0', 'at 02:30 on Sundays'],
  ['30 2 * * 7', 'at 02:30 on Sundays'],
  ['0 3 * * *', 'at 03:00 every day'],
  ['0 3,15 * * *', 'at 03:00 and 15:00 every day'],
  ['0 4 1 * *', 'at 04:00 on the 1st of the month'],
  ['0 4 1,15,22 1,7 *', 'at 04:00 on the 1st, 15th and 22nd of the month in January and July'],
  ['0 23 * * mon-FRI', 'at 23:00 from Monday to Friday'],
  ['0 23 * * 5-sun', 'at 23:00 on Fridays, Saturdays and Sundays'],
  ['0 23 * * 6,0', 'at 23:00 on Saturdays and Sundays'],
  ['0 1 13 * 5', 'at 01:00 on the 13th of the month and on Fridays'],
  ['* * * * *', 'every minute every day'],
  ['*/15 * * * *', 'every 15 minutes every day'],
  ['0 * * * *', 'at every full hour every day'],
  ['5 * * * *', 'at minute 5 of every hour every day'],
  ['0 */4 * * *', 'every 4 hours, at 00:00, 04:00 and so on every day'],
  ['15 8-18 * * 1-5', 'at minute 15 of each hour from 08:15 to 18:15 from Monday to Friday'],
  ['0 0 */11 * *', 'at 00:00 on the 1st, 12th and 23rd of the month every day'.replace(' every day', '')],
  ['  0   0  29 2 * ', 'at 00:00 on the 29th of the month in February'],
])('%s: %s', (schedule, words) => {
  expect(cronWords(schedule)).toBe(words);
});

test.each(['', '* * * *', '* * * * * *', '60 * * * *', '0 24 * * *', '0 0 0 * *', '0 0 * 13 *', '0 0 * * 8', '@daily', '0 0 L * *', '0/0 * * * *', '5-1 * * * *', 'a b c d e', '*/7 1-5,9 * * *'])('nothing is said of %j', (schedule) => {
  expect(cronWords(schedule)).toBeNull();
});
