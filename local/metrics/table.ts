/** How a metric behaves. A `recent-max` is shown as a gauge: the largest value of a window that moves. */
type MetricKind = 'counter' | 'gauge' | 'histogram' | 'recent-max';

export interface MetricDefinition {
  readonly kind: MetricKind;
  readonly help: string;
  readonly labels?: readonly string[];
  /** Upper bounds of a histogram, ascending. */
  readonly buckets?: readonly number[];
}

/** From half a millisecond to ten seconds. */
const DURATION_BUCKETS: readonly number[] = [
  0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
];
/** The same, with edges between: latencies that people look at first, of which each has few combinations of labels. */
const FINE_DURATION_BUCKETS: readonly number[] = [
  0.000_5, 0.000_75, 0.001, 0.001_5, 0.002, 0.002_5, 0.003_5, 0.005, 0.007_5, 0.01, 0.015, 0.02, 0.025, 0.035, 0.05,
  0.075, 0.1, 0.15, 0.2, 0.25, 0.35, 0.5, 0.75, 1, 1.5, 2.5, 5, 10,
];
/** Requests in a group commit. */
const GROUP_BUCKETS: readonly number[] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024, 4_096];
/** From a second to half a day. */
const LONG_BUCKETS: readonly number[] = [1, 5, 15, 60, 300, 900, 3_600, 14_400, 43_200];

/**
 * Every metric of a node. Names are those of the reference where it has one, so that dashboards go on working; the
 * rest are ours.
 */
export const METRICS: Readonly<Record<string, MetricDefinition>> = {
  // What the node does
  eventstore_statuses: {
    kind: 'gauge',
    help: 'Current status of a component of the node; the value is the time in seconds since 1970.',
    labels: ['name', 'status'],
  },
  eventstore_checkpoints: {
    kind: 'gauge',
    help: 'Positions in the log: end of the durable log (writer), and the positions of other checkpoints. proposal is the number of an epoch.',
    labels: ['name', 'read'],
  },
  eventstore_io_bytes_total: {
    kind: 'counter',
    help: 'Bytes of the data and metadata of events that clients read, and bytes of records written to the log.',
    labels: ['activity'],
  },
  eventstore_io_events_total: {
    kind: 'counter',
    help: 'Events that clients read, and events written to the log.',
    labels: ['activity'],
  },

  // Writing
  eventstore_append_duration_seconds: {
    kind: 'histogram',
    help: 'Time from the arrival of a write to its acknowledgement: per group commit, that of the longest wait.',
    buckets: FINE_DURATION_BUCKETS,
  },
  eventstore_append_group_requests: {
    kind: 'histogram',
    help: 'Writes made durable by one group commit.',
    buckets: GROUP_BUCKETS,
  },
  eventstore_append_queue_length: { kind: 'gauge', help: 'Writes waiting for the next group commit.' },
  eventstore_writer_flush_size_max: {
    kind: 'recent-max',
    help: 'Largest group of records in bytes.',
    labels: ['range'],
  },
  eventstore_writer_flush_duration_max_seconds: {
    kind: 'recent-max',
    help: 'Longest time that a group took to become durable.',
    labels: ['range'],
  },
  eventstore_queue_queueing_duration_max_seconds: {
    kind: 'recent-max',
    help: 'Longest wait for a turn.',
    labels: ['name', 'range'],
  },
  eventstore_clock_steps_back_total: {
    kind: 'counter',
    help: 'How often the clock was more than 5 minutes behind the last record of the log, so that records got an earlier time.',
  },

  // Caches and index
  eventstore_cache_hits_misses_total: {
    kind: 'counter',
    help: 'Lookups: of blocks of files (chunk) and of states of streams (stream-info).',
    labels: ['cache', 'kind'],
  },
  eventstore_cache_resources_bytes: {
    kind: 'gauge',
    help: 'Bytes in a cache, and its capacity in bytes.',
    labels: ['cache', 'kind'],
  },
  eventstore_cache_resources_entries: { kind: 'gauge', help: 'Entries in a cache.', labels: ['cache', 'kind'] },
  eventstore_index_memtable_entries: { kind: 'gauge', help: 'Index entries not yet in a table.' },
  eventstore_index_table_entries: { kind: 'gauge', help: 'Index entries in tables.' },
  eventstore_index_tables: { kind: 'gauge', help: 'Index tables.' },
  eventstore_attribute_index_lag_bytes: {
    kind: 'gauge',
    help: 'Bytes of the log that an attribute index does not cover yet.',
    labels: ['index'],
  },
  eventstore_attribute_index_entries: {
    kind: 'gauge',
    help: 'Entries of an attribute index.',
    labels: ['index'],
  },
  eventstore_index_merges_total: { kind: 'counter', help: 'Merges of index tables.' },
  eventstore_log_chunks: { kind: 'gauge', help: 'Chunk files in use.' },
  eventstore_log_unprotected_bytes: {
    kind: 'gauge',
    help: 'Bytes at the end of the log whose checksums are not on disk yet.',
  },
  eventstore_log_unproven_bytes: {
    kind: 'gauge',
    help: 'Bytes of completed chunk files whose checksum was not verified since they were written or changed.',
  },
  eventstore_log_oldest_proof_age_seconds: {
    kind: 'gauge',
    help: 'Time since the least recently verified completed chunk file was verified; absent when none was.',
  },
  eventstore_subscriptions: { kind: 'gauge', help: 'Subscriptions and waiting reads.' },

  // Start and scavenge
  eventstore_start_done_bytes: { kind: 'gauge', help: 'Bytes processed by the current startup step.' },
  eventstore_start_total_bytes: { kind: 'gauge', help: 'Total bytes of the current startup step.' },
  eventstore_scavenge_chunks_done: { kind: 'gauge', help: 'Chunks processed by the current phase of the scavenge.' },
  eventstore_scavenge_chunks_total: { kind: 'gauge', help: 'Total chunks of the current phase of the scavenge.' },
  eventstore_scavenge_done_bytes: { kind: 'gauge', help: 'Bytes processed by the current phase of the scavenge.' },
  eventstore_scavenge_total_bytes: { kind: 'gauge', help: 'Total bytes of the current phase of the scavenge.' },
  eventstore_scavenge_reclaimed_bytes: { kind: 'gauge', help: 'Disk bytes reclaimed by the scavenge.' },

  // Backups
  eventstore_proof_chunks: { kind: 'gauge', help: 'Completed chunks covered by the hash chain; absent without one.' },
  eventstore_proof_receipts: {
    kind: 'gauge',
    help: 'Receipts for chunk files that scavenges have replaced since the hash chain was started.',
  },
  eventstore_proof_damaged: {
    kind: 'gauge',
    help: 'Is 1 if the hash chain is damaged, so that no anchors are made and no scavenges run.',
  },
  eventstore_proof_anchored_position: {
    kind: 'gauge',
    help: 'Log position covered by the newest anchor delivered since startup.',
  },
  eventstore_proof_anchor_age_seconds: {
    kind: 'gauge',
    help: 'Time since an anchor was delivered; absent when none was since startup.',
  },
  eventstore_proof_anchors_total: { kind: 'counter', help: 'Anchors delivered.' },
  eventstore_proof_anchor_failures_total: { kind: 'counter', help: 'Failed attempts to make or deliver an anchor.' },
  eventstore_backup_runs_total: {
    kind: 'counter',
    help: 'Backups made by the node, by result: Success, Aborted, Failed.',
    labels: ['result'],
  },
  eventstore_backup_duration_seconds: {
    kind: 'histogram',
    help: 'Duration of a backup, whatever its result.',
    buckets: LONG_BUCKETS,
  },
  eventstore_backup_done_bytes: {
    kind: 'gauge',
    help: 'Bytes of files processed by the running backup; 0 when none is running.',
  },
  eventstore_backup_total_bytes: {
    kind: 'gauge',
    help: 'Total bytes of files of the running backup; 0 when none is running.',
  },
  eventstore_backup_holds: { kind: 'gauge', help: 'Holds of external backups on the files of the node.' },
  eventstore_backup_age_seconds: {
    kind: 'gauge',
    help: 'Time since the newest backup of this node in its repository was taken; absent when there is none.',
  },
  eventstore_backup_proven_age_seconds: {
    kind: 'gauge',
    help: 'Time since a drill last tested a backup in the repository successfully; absent when none has.',
  },
  eventstore_backup_unshipped_bytes: {
    kind: 'gauge',
    help: 'Bytes of the log neither backed up nor shipped: what would be lost with the node.',
  },
  eventstore_backup_ship_lag_seconds: {
    kind: 'gauge',
    help: 'Time since the repository last held everything acknowledged.',
  },

  // HTTP, users, certificates
  eventstore_http_requests_total: {
    kind: 'counter',
    help: 'HTTP requests answered.',
    labels: ['method', 'status', 'area'],
  },
  eventstore_http_request_duration_seconds: {
    kind: 'histogram',
    help: 'Time from request to reply, excluding long-poll waits and subscription bodies.',
    labels: ['method', 'area'],
    buckets: FINE_DURATION_BUCKETS,
  },
  eventstore_http_requests_under_way: { kind: 'gauge', help: 'HTTP requests in progress.' },
  eventstore_http_requests_failed_total: { kind: 'counter', help: 'HTTP requests that failed inside the node.' },
  eventstore_current_incoming_grpc_calls: { kind: 'gauge', help: 'Open gRPC calls, including subscriptions.' },
  eventstore_incoming_grpc_calls_total: {
    kind: 'counter',
    help: 'Calls of gRPC: all received (total), and of those ended, the ones that failed, were unimplemented, or exceeded their deadline.',
    labels: ['kind'],
  },
  eventstore_grpc_method_duration_seconds: {
    kind: 'histogram',
    help: 'Duration of gRPC calls until their status, excluding open-ended ones.',
    labels: ['activity', 'status'],
    buckets: DURATION_BUCKETS,
  },
  eventstore_grpc_calls_total: {
    kind: 'counter',
    help: 'Completed gRPC calls, by method and status.',
    labels: ['activity', 'status'],
  },
  eventstore_grpc_open_calls: { kind: 'gauge', help: 'Open gRPC calls, by method.', labels: ['activity'] },
  eventstore_grpc_messages_total: {
    kind: 'counter',
    help: 'Messages of gRPC calls, received from clients and sent to them.',
    labels: ['activity', 'kind'],
  },
  eventstore_kestrel_connections: { kind: 'gauge', help: 'Open connections, of HTTP and of gRPC.' },
  eventstore_http_connections_refused_total: {
    kind: 'counter',
    help: 'Connections refused because too many were open: of one address, or in all (total); HTTP/2 connections asked to close because too many of their streams were waiting (streams).',
    labels: ['limit'],
  },
  eventstore_http_owners_failed_total: {
    kind: 'counter',
    help: 'Connections and HTTP/2 streams closed because their handler failed.',
    labels: ['owner'],
  },
  eventstore_requests_refused_total: {
    kind: 'counter',
    help: 'HTTP requests and gRPC calls refused, by error code: not authenticated, not permitted, or no capacity.',
    labels: ['kind'],
  },
  eventstore_authentications_total: {
    kind: 'counter',
    help: 'Logins by outcome: verified with the password, cached (verified a short time ago), or failed.',
    labels: ['result'],
  },
  eventstore_access_lists_unreadable_total: {
    kind: 'counter',
    help: 'Access checks that met an invalid access list, of a stream or in $settings: only administrators are allowed.',
  },
  eventstore_password_derivations_total: {
    kind: 'counter',
    help: 'Password hashes computed, each of which takes tens of milliseconds of CPU.',
  },
  eventstore_audit_entries_total: {
    kind: 'counter',
    help: 'Audit entries, by destination (file, stream) and whether they were written or lost.',
    labels: ['sink', 'result'],
  },
  eventstore_audit_failing: {
    kind: 'gauge',
    help: 'Is 1 while audit entries cannot be written, so that actions are not recorded.',
  },
  eventstore_certificate_expiry_days: {
    kind: 'gauge',
    help: 'Days until the certificate of the node expires; negative when it has.',
  },

  // Persistent subscriptions, where the node leads
  eventstore_persistent_sub_connections: {
    kind: 'gauge',
    help: 'Consumers that are connected to a persistent subscription.',
    labels: ['event_stream_id', 'group_name'],
  },
  eventstore_persistent_sub_parked_messages: {
    kind: 'gauge',
    help: 'Messages that a persistent subscription has parked.',
    labels: ['event_stream_id', 'group_name'],
  },
  eventstore_persistent_sub_oldest_parked_message_seconds: {
    kind: 'gauge',
    help: 'Age of the oldest message that a persistent subscription has parked; 0 without one.',
    labels: ['event_stream_id', 'group_name'],
  },
  eventstore_persistent_sub_in_flight_messages: {
    kind: 'gauge',
    help: 'Messages sent to consumers and not yet acknowledged.',
    labels: ['event_stream_id', 'group_name'],
  },
  eventstore_persistent_sub_last_known_event_number: {
    kind: 'gauge',
    help: 'Number of the last known event of the stream of a persistent subscription.',
    labels: ['event_stream_id', 'group_name'],
  },
  eventstore_persistent_sub_last_known_event_commit_position: {
    kind: 'gauge',
    help: 'Position of the last known event of a persistent subscription to $all.',
    labels: ['event_stream_id', 'group_name'],
  },
  eventstore_persistent_sub_checkpointed_event_number: {
    kind: 'gauge',
    help: 'Event number of the checkpoint of a persistent subscription.',
    labels: ['event_stream_id', 'group_name'],
  },
  eventstore_persistent_sub_checkpointed_event_commit_position: {
    kind: 'gauge',
    help: 'Position of the checkpoint of a persistent subscription to $all.',
    labels: ['event_stream_id', 'group_name'],
  },
  eventstore_persistent_sub_items_processed_total: {
    kind: 'counter',
    help: 'Messages that a persistent subscription has sent.',
    labels: ['event_stream_id', 'group_name'],
  },
  eventstore_persistent_sub_parked_message_replays_total: {
    kind: 'counter',
    help: 'Parked messages that were replayed.',
    labels: ['event_stream_id', 'group_name'],
  },
  eventstore_persistent_sub_parked_message_truncations_total: {
    kind: 'counter',
    help: 'Requests to discard parked messages of a persistent subscription.',
    labels: ['event_stream_id', 'group_name'],
  },
  eventstore_persistent_sub_park_message_requests_total: {
    kind: 'counter',
    help: 'Messages parked, because a consumer asked for it (client-nak) or retries were exhausted (max-retries).',
    labels: ['event_stream_id', 'group_name', 'reason'],
  },

  // Webhooks
  eventstore_webhook_calls_total: {
    kind: 'counter',
    help: 'Webhook calls by connector and outcome. Calls for connectors that are not running have no connector.',
    labels: ['connector', 'outcome'],
  },
  eventstore_webhook_call_duration_seconds: {
    kind: 'histogram',
    help: 'Time from the arrival of a call with its body to its answer.',
    labels: ['connector'],
    buckets: DURATION_BUCKETS,
  },
  eventstore_webhook_secret_matches_total: {
    kind: 'counter',
    help: 'Calls by the secret that signed them: 0 is signature:secret, 1 is signature:secrets:0.',
    labels: ['connector', 'secret'],
  },
  eventstore_webhook_losses_total: {
    kind: 'counter',
    help: 'Accepted calls whose events could not be written; each is listed in the rejections of its connector.',
    labels: ['connector'],
  },

  // The cluster: elections and gossip
  eventstore_elections_count_total: { kind: 'counter', help: 'Elections in which this member was a candidate.' },
  eventstore_gossip_latency_seconds: {
    kind: 'histogram',
    help: 'Time from a gossip request of this member to its answer.',
    labels: ['activity', 'status'],
    buckets: DURATION_BUCKETS,
  },
  eventstore_gossip_processing_duration_seconds: {
    kind: 'histogram',
    help: 'Time this member took to answer a gossip request.',
    labels: ['activity', 'status'],
    buckets: DURATION_BUCKETS,
  },

  // The cluster: the replica, and which member leads
  eventstore_cluster_leader: { kind: 'gauge', help: 'Is 1 while this member is the leader.' },
  eventstore_cluster_epoch: {
    kind: 'gauge',
    help: 'Number of the newest epoch in the replica of this member; -1 for none.',
  },
  eventstore_cluster_takeovers_total: {
    kind: 'counter',
    help: 'Epochs applied to the replica since startup, by leader: this member (self) or another (other).',
    labels: ['by'],
  },
  eventstore_cluster_members: {
    kind: 'gauge',
    help: 'Members known to this one, including itself: reachable (alive) and unreachable (dead).',
    labels: ['kind'],
  },
  eventstore_cluster_caught_up: {
    kind: 'gauge',
    help: "Is 0 while the replica has not caught up with the log end at its opening, and while it can't apply commits.",
  },
  eventstore_cluster_applied_commit: { kind: 'gauge', help: 'Number of the last commit in the replica.' },
  eventstore_cluster_lag_commits: { kind: 'gauge', help: 'Commits known to be in the log but not yet in the replica.' },
  eventstore_cluster_lag_bytes: { kind: 'gauge', help: 'Bytes known to be in the log but not yet in the replica.' },
  eventstore_cluster_commits_total: {
    kind: 'counter',
    help: 'Commits applied to the replica, by source: own ones (self), pushed by the leader (leader), polled from the bucket (bucket).',
    labels: ['from'],
  },
  eventstore_cluster_bucket_silent_seconds: {
    kind: 'gauge',
    help: 'For how long the bucket has not answered this member; 0 while it does.',
  },

  // The cluster: requests that are for the leader
  eventstore_forwarded_requests_total: {
    kind: 'counter',
    help: 'Requests forwarded to the leader, by outcome of each attempt: answered, not-leader, unreachable, silent; here counts requests that this member then decided itself, unknown those with an unknown outcome.',
    labels: ['outcome'],
  },
  eventstore_forwarded_request_duration_seconds: {
    kind: 'histogram',
    help: 'Time from a complete request to the answer of the leader, including all attempts, until this member has applied what the leader wrote.',
    buckets: DURATION_BUCKETS,
  },

  // The process and its machine
  eventstore_proc_up_time_seconds_total: {
    kind: 'counter',
    help: 'Seconds since the process started.',
    labels: ['pid'],
  },
  eventstore_proc_cpu: { kind: 'gauge', help: 'CPU time used by the process, in percent of one core.' },
  eventstore_proc_cpu_seconds_total: { kind: 'counter', help: 'CPU time used by the process.', labels: ['kind'] },
  eventstore_proc_mem_bytes: { kind: 'gauge', help: 'Memory of the process.', labels: ['kind'] },
  eventstore_disk_io_bytes_total: {
    kind: 'counter',
    help: 'Bytes that the process has read from and written to disks.',
    labels: ['activity'],
  },
  eventstore_disk_io_operations_total: {
    kind: 'counter',
    help: 'System calls of the process that read and wrote.',
    labels: ['activity'],
  },
  eventstore_gc_collection_count_total: { kind: 'counter', help: 'Garbage collections.', labels: ['generation'] },
  eventstore_gc_time_in_gc: { kind: 'gauge', help: 'Time spent in garbage collections lately, in percent.' },
  eventstore_gc_pause_duration_max_seconds: {
    kind: 'recent-max',
    help: 'Longest garbage collection.',
    labels: ['range'],
  },
  eventstore_gc_heap_size_bytes: { kind: 'gauge', help: 'Bytes of JavaScript objects.' },
  eventstore_gc_generation_size_bytes: {
    kind: 'gauge',
    help: 'Bytes of JavaScript objects by generation.',
    labels: ['generation'],
  },
  eventstore_event_loop_delay_seconds: { kind: 'gauge', help: 'Recent timer delay of the process.', labels: ['kind'] },
  eventstore_event_loop_utilization: { kind: 'gauge', help: 'Recent event loop utilisation, 0 to 1.' },
  eventstore_sys_load_avg: { kind: 'gauge', help: 'Load average of the machine.', labels: ['period'] },
  eventstore_sys_mem_bytes: { kind: 'gauge', help: 'Memory of the machine.', labels: ['kind'] },
  eventstore_sys_disk_bytes: { kind: 'gauge', help: 'Disk space of the data directory.', labels: ['disk', 'kind'] },
};
