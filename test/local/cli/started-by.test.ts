import { expect, test } from 'vitest';
import { commandName, startCommand, startOption } from '../../../local/cli/started-by.ts';

test.each([
  { how: 'npm start, in a checkout', env: { npm_lifecycle_event: 'start' }, isOfCheckout: true, name: 'npx skua' },
  { how: 'the script itself, in a checkout', env: {}, isOfCheckout: true, name: 'npx skua' },
  {
    how: 'npx, in a folder with the package',
    env: { npm_lifecycle_event: 'npx' },
    isOfCheckout: false,
    name: 'npx skua',
  },
  { how: 'an archive', env: {}, isOfCheckout: false, name: 'skua' },
])('$how: commands are named as they work there', ({ env, isOfCheckout, name }) => {
  expect(commandName(env, isOfCheckout)).toBe(name);
  expect(startCommand(env, isOfCheckout)).toBe(isOfCheckout ? 'npm start' : `${name} start --disable-tls`);
});

test('an option of a start that npm runs stands behind --', () => {
  const option = '--node-port 2114';
  expect(startOption(option, { npm_lifecycle_event: 'start' })).toBe('npm start -- --node-port 2114');
  expect(startOption(option, { npm_lifecycle_event: 'npx' })).toBe(option);
  expect(startOption(option, {})).toBe(option);
});
