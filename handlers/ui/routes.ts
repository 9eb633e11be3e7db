import { area, operation } from '../http/route.ts';
import { PAGE_DOCS } from '../openapi/page.ts';
import { asset, page } from './page.ts';
import { logIn, logOut, session } from './session.ts';

const GET = 'GET, OPTIONS';
const PAGE = operation('anyone', 'here', page, PAGE_DOCS.page);

/** The paths of the page. Those that are no file of it all get the page itself, which shows the view of its address. */
export const PAGE_ROUTES = area({ tag: 'Page', feature: 'page', offBy: 'disableAdminUi' }, [
  { path: '/ui', methods: GET, operations: { GET: PAGE } },
  { path: '/ui/assets/:name', methods: GET, operations: { GET: operation('anyone', 'here', asset, PAGE_DOCS.asset) } },
  {
    path: '/ui/session', methods: 'GET, POST, DELETE, OPTIONS',
    operations: { GET: operation('anyone', 'here', session, PAGE_DOCS.session), POST: operation('anyone', 'here', logIn, PAGE_DOCS.logIn, 'login'), DELETE: operation('anyone', 'here', logOut, PAGE_DOCS.logOut, 'logout') },
  },
  { path: '/ui/:path+', methods: GET, operations: { GET: operation('anyone', 'here', page, PAGE_DOCS.view) } },
]);
