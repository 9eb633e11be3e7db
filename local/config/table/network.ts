import { boolean, integer, ip, text } from '../kinds.ts';
import { flag, option, optional } from '../option.ts';

const PORT_MAX = 65_535;

/** Options of section 2.2: where the node listens, and what it serves there. */
export const network = {
  NodeIp: option(ip, '127.0.0.1', 'Address to listen on', { aliases: ['HttpIp', 'ExtIp'] }),
  NodePort: option(integer('PORT', 0, PORT_MAX), 2113, 'Port to listen on; 0 takes any free one', { aliases: ['HttpPort', 'ExtPort'] }),
  NodeHostAdvertiseAs: optional(text('HOST'), 'Host by which others reach the node, where that is not its address', { aliases: ['ExtHostAdvertiseAs'], fallbackText: 'NodeIp' }),
  NodePortAdvertiseAs: option(integer('PORT', 0, PORT_MAX), 0, 'Port by which others reach the node; 0 for NodePort', { aliases: ['HttpPortAdvertiseAs'] }),
  EnableAtomPubOverHttp: option(boolean, true, 'Serve streams over HTTP'),
  DisableAdminUi: flag(boolean, 'Remove / and all routes below /admin: a reload is then ordered by SIGHUP only'),
  DisableStatsOnHttp: flag(boolean, 'Remove /stats and /metrics'),
  DisableGossipOnHttp: flag(boolean, 'Remove /gossip'),
  EnableTrustedAuth: flag(boolean, 'Believe the header ES-TrustedAuth, in which a proxy names the user and the groups. Only where nobody reaches the port but that proxy'),
};

/** Options of section 2.3. */
export const cluster = {
  ClusterSize: option(integer('COUNT'), 1, 'Nodes of the cluster; this version runs single nodes'),
  ClusterSecret: optional(text('SECRET', { mayBeEmpty: true }), 'Secret that the nodes of a cluster without TLS share', { isSensitive: true }),
  NodePriority: option(integer('NUMBER'), 0, 'Nodes with a higher one are preferred as leader'),
};
