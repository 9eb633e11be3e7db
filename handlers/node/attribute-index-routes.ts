import { ATTRIBUTE_INDEXES, type AttributeSetting } from '../../core/attributes/api.ts';
import { SkuaError } from '../../core/base/errors.ts';
import { changeSetting, readSetting } from '../../core/streams/change-setting/change-setting.ts';
import type { AttributeIndexesDocument, AttributeSettingBody } from '../documents/attribute-indexes.ts';
import { readJson } from '../http/body.ts';
import { noteForAudit } from '../http/context.ts';
import type { App, Call, Handler, Reply } from '../http/context.ts';
import { JSON_ONLY, negotiate } from '../http/negotiate.ts';
import { adminJson } from '../http/reply.ts';
import { area, operation } from '../http/route.ts';
import { ATTRIBUTE_INDEX_DOCS } from '../openapi/attribute-index-paths.ts';

/** Attribute indexes over HTTP: which ones the log has, and how those of this node stand. */

/** Largest body of POST `/admin/indexes` in bytes. */
const BODY_BYTES_MAX = 4_096;

function reply(call: Call, app: App, setting: AttributeSetting): Reply {
  const indexes = app.node?.attributeIndexes() ?? [];
  return adminJson(call, 200, { setting, indexes } satisfies AttributeIndexesDocument);
}

/** GET `/admin/indexes`. */
const readIndexes: Handler = async (call, app) => {
  negotiate(call, JSON_ONLY);
  return reply(call, app, await readSetting(app.store));
};

/** POST `/admin/indexes`. What it asks for is done in the background, by all that have the log. */
const changeIndexes: Handler = async (call, app) => {
  negotiate(call, JSON_ONLY);
  const wanted = wantedOf(await readJson(call, app, Math.min(BODY_BYTES_MAX, app.options.bodyBytesMax)));
  noteForAudit(call, { details: { ...wanted } });
  return reply(call, app, await changeSetting(app.store, app.world.ids, wanted));
};

function wantedOf(body: unknown): AttributeSettingBody {
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw new SkuaError('bad_json', 'The body must be a JSON object such as {"correlations": true, "tags": false}.');
  const wanted: Record<string, boolean> = {};
  for (const [name, value] of Object.entries(body)) {
    if (!ATTRIBUTE_INDEXES.some((known) => known === name) || typeof value !== 'boolean')
      throw new SkuaError('bad_request', 'Give names, correlations or tags, each true or false, and nothing else.');
    wanted[name] = value;
  }
  if (Object.keys(wanted).length === 0)
    throw new SkuaError('bad_request', 'Name at least one index: names, correlations or tags.');
  return wanted;
}

/** What is written is decided by the leader of a cluster, whichever member is asked. */
export const ATTRIBUTE_INDEX_ROUTES = area({ tag: 'Administration', offBy: 'disableAdminUi' }, [
  {
    path: '/admin/indexes',
    methods: 'GET, POST, OPTIONS',
    operations: {
      GET: operation('administrators', 'here', readIndexes, ATTRIBUTE_INDEX_DOCS.read),
      POST: operation('administrators', 'writes', changeIndexes, ATTRIBUTE_INDEX_DOCS.change, 'index.set'),
    },
  },
]);
