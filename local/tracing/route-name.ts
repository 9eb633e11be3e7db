import type { Route } from '../../handlers/http/route.ts';

/** Finds the template of a path, such as `/streams/{stream}`, so that spans of one route have one name. */
export function routeNamer(routes: readonly Pick<Route, 'path'>[]): (path: string) => string | null {
  const known = routes.map(({ path }) => ({
    find: new RegExp(`^${path.replace(/[.*^$()|[\]\\]/g, '\\$&').replace(/:\w+\+/g, '.+').replace(/:\w+/g, '[^/]+')}$`),
    name: path.replaceAll('%24', '$').replace(/:(\w+)\+?/g, '{$1}'),
  }));
  return (path) => {
    const plain = path.replace(/^\/streams\/(?:%24|\$)/i, '/streams/%24');
    return known.find(({ find }) => find.test(plain))?.name ?? null;
  };
}
