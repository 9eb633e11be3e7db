import { bundled } from '../../infra/runtime/version.ts';

/** What a user types, by what has started this process: npm tells that in the environment. */

type Env = Readonly<Record<string, string | undefined>>;

const isCheckout = bundled('.') === null;

/** In front of the words of a command. A checkout has no other; a package or an archive may be in the path. */
export function commandName(env: Env, isOfCheckout = isCheckout): string {
  return isOfCheckout || env['npm_lifecycle_event'] !== undefined ? 'npx skua' : 'skua';
}

/** What starts a node. */
export function startCommand(env: Env, isOfCheckout = isCheckout): string {
  return isOfCheckout ? 'npm start' : `${commandName(env, isOfCheckout)} start --disable-tls`;
}

/** How a start is given one more option: npm passes on only what stands behind `--`. */
export function startOption(option: string, env: Env = process.env): string {
  return env['npm_lifecycle_event'] === 'start' ? `npm start -- ${option}` : option;
}
