import { adminJson, adminReply } from './admin-reply.ts';
import type { Handler } from './context.ts';
import { ADMIN_KINDS, JSON_ONLY, negotiate } from './negotiate.ts';
import { nodeOf } from './node-of.ts';

/** GET `/ping` (http-api.md section 4). The last two members mean nothing; clients of the reference find them there. */
export const ping: Handler = (call) => {
  const text = 'Ping request successfully handled';
  return adminReply(call, negotiate(call, ADMIN_KINDS), { text, msgTypeId: 123, label: 'Http' }, text);
};

/** GET `/info` (http-api.md section 4.1). */
export const info: Handler = (call, app) => {
  negotiate(call, JSON_ONLY);
  const node = nodeOf(call, app);
  return adminJson(call, 200, {
    dbVersion: node.version,
    esVersion: node.version,
    state: node.state.toLowerCase(),
    features: { projections: false, userManagement: app.security !== null, atomPub: !app.options.disableAtomPub },
    authentication: { type: node.authenticationType, properties: null },
  });
};

/** GET `/info/options` (http-api.md section 4.2): every option, with the members of both generations. */
export const infoOptions: Handler = (call, app) => {
  negotiate(call, JSON_ONLY);
  return adminJson(call, 200, nodeOf(call, app).options.map(({ name, description, group, value, configurationSource, deprecationMessage, possibleValues, schema }) => (
    { name, description, group, value, possibleValues, configurationSource, deprecationMessage, schema: { type: schema.type } })));
};

/** GET `/sys/subsystems`: the reference runs projections as one; there are none here. */
export const subsystems: Handler = (call, app) => {
  negotiate(call, JSON_ONLY);
  nodeOf(call, app);
  return adminJson(call, 200, []);
};
