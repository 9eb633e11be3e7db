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
const DURATION_BUCKETS: readonly number[] = [0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
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
  eventstore_statuses: { kind: 'gauge', help: 'Present status of a part of the node; the value is the time in seconds since 1970.', labels: ['name', 'status'] },
  eventstore_checkpoints: { kind: 'gauge', help: 'Positions in the log: end of the durable log (writer), and how far others have followed. proposal is the number of an epoch.', labels: ['name', 'read'] },
  eventstore_io_bytes_total: { kind: 'counter', help: 'Bytes of the data and metadata of events that clients read, and bytes of records written to the log.', labels: ['activity'] },
  eventstore_io_events_total: { kind: 'counter', help: 'Events that clients read, and events written to the log.', labels: ['activity'] },

  // Writing
  eventstore_append_duration_seconds: { kind: 'histogram', help: 'From the arrival of a write to its acknowledgement: of each group commit, the write that waited longest.', buckets: DURATION_BUCKETS },
  eventstore_append_group_requests: { kind: 'histogram', help: 'Writes that one group commit made durable together.', buckets: GROUP_BUCKETS },
  eventstore_append_queue_length: { kind: 'gauge', help: 'Writes that wait for the next group commit.' },
  eventstore_writer_flush_size_max: { kind: 'recent-max', help: 'Largest group of records in bytes.', labels: ['range'] },
  eventstore_writer_flush_duration_max_seconds: { kind: 'recent-max', help: 'Longest time that a group took to become durable.', labels: ['range'] },
  eventstore_queue_queueing_duration_max_seconds: { kind: 'recent-max', help: 'Longest wait for a turn.', labels: ['name', 'range'] },
  eventstore_clock_steps_back_total: { kind: 'counter', help: 'Times that the clock stood more than 5 minutes before the last record of the log, so that records were written with an earlier time.' },

  // Caches and index
  eventstore_cache_hits_misses_total: { kind: 'counter', help: 'Lookups: of blocks of files (chunk) and of states of streams (stream-info).', labels: ['cache', 'kind'] },
  eventstore_cache_resources_bytes: { kind: 'gauge', help: 'Bytes in a cache, and how many it may hold.', labels: ['cache', 'kind'] },
  eventstore_cache_resources_entries: { kind: 'gauge', help: 'Entries in a cache.', labels: ['cache', 'kind'] },
  eventstore_index_memtable_entries: { kind: 'gauge', help: 'Index entries that are in no table yet.' },
  eventstore_index_table_entries: { kind: 'gauge', help: 'Index entries in tables.' },
  eventstore_index_tables: { kind: 'gauge', help: 'Index tables.' },
  eventstore_index_merges_total: { kind: 'counter', help: 'Merges of index tables.' },
  eventstore_log_chunks: { kind: 'gauge', help: 'Chunk files in force.' },
  eventstore_log_unprotected_bytes: { kind: 'gauge', help: 'Bytes at the end of the log whose checksums are not on disk yet.' },
  eventstore_log_unproven_bytes: { kind: 'gauge', help: 'Bytes of completed chunk files that have not been compared with their checksum since they were written or changed.' },
  eventstore_log_oldest_proof_age_seconds: { kind: 'gauge', help: 'Time since the completed chunk file that was proved longest ago was compared with its checksum; absent when none was.' },
  eventstore_subscriptions: { kind: 'gauge', help: 'Subscriptions and waiting reads.' },

  // Start and scavenge
  eventstore_start_done_bytes: { kind: 'gauge', help: 'Bytes that the present step of the start has worked through.' },
  eventstore_start_total_bytes: { kind: 'gauge', help: 'Bytes that the present step of the start has before it.' },
  eventstore_scavenge_chunks_done: { kind: 'gauge', help: 'Chunks that the present phase of the scavenge has worked through.' },
  eventstore_scavenge_chunks_total: { kind: 'gauge', help: 'Chunks of the present phase of the scavenge.' },
  eventstore_scavenge_done_bytes: { kind: 'gauge', help: 'Bytes that the present phase of the scavenge has worked through.' },
  eventstore_scavenge_total_bytes: { kind: 'gauge', help: 'Bytes of the present phase of the scavenge.' },
  eventstore_scavenge_reclaimed_bytes: { kind: 'gauge', help: 'Bytes that the scavenge has given back to the disk.' },

  // Backups
  eventstore_proof_chunks: { kind: 'gauge', help: 'Completed chunks whose records are written down by their hashes; absent without a chain of hashes.' },
  eventstore_proof_receipts: { kind: 'gauge', help: 'Receipts of chunk files that scavenges have replaced since the chain of hashes was begun.' },
  eventstore_proof_damaged: { kind: 'gauge', help: 'Whether the chain of hashes is damaged (1), so that there are neither anchors nor scavenges.' },
  eventstore_proof_anchored_position: { kind: 'gauge', help: 'Position in the log up to which the newest anchor speaks that has reached its place since the start.' },
  eventstore_proof_anchor_age_seconds: { kind: 'gauge', help: 'Time since an anchor has reached its place; absent when none has since the start.' },
  eventstore_proof_anchors_total: { kind: 'counter', help: 'Anchors that have reached their place.' },
  eventstore_proof_anchor_failures_total: { kind: 'counter', help: 'Tries to make an anchor or to bring it to its place that failed.' },
  eventstore_backup_runs_total: { kind: 'counter', help: 'Backups that the node has made of itself, by how they ended: Success, Aborted, Failed.', labels: ['result'] },
  eventstore_backup_duration_seconds: { kind: 'histogram', help: 'How long a backup took, however it ended.', buckets: LONG_BUCKETS },
  eventstore_backup_done_bytes: { kind: 'gauge', help: 'Bytes of files that the backup under way has worked through; 0 when none is.' },
  eventstore_backup_total_bytes: { kind: 'gauge', help: 'Bytes of files of the backup under way; 0 when none is.' },
  eventstore_backup_holds: { kind: 'gauge', help: 'Holds that backups made from outside have on the files of the node.' },
  eventstore_backup_age_seconds: { kind: 'gauge', help: 'Time since the newest backup of this node in its repository was taken; absent when there is none.' },
  eventstore_backup_proven_age_seconds: { kind: 'gauge', help: 'Time since a drill last proved a backup in the repository to be good; absent when none has.' },
  eventstore_backup_unshipped_bytes: { kind: 'gauge', help: 'Bytes of the log that are in no backup and not shipped: what would be lost with the node.' },
  eventstore_backup_ship_lag_seconds: { kind: 'gauge', help: 'Time since everything acknowledged was in the repository.' },

  // HTTP, users, certificates
  eventstore_http_requests_total: { kind: 'counter', help: 'HTTP requests answered.', labels: ['method', 'status', 'area'] },
  eventstore_http_request_duration_seconds: { kind: 'histogram', help: 'From a request to its reply, without the waiting of long polls and the body of a subscription.', labels: ['method', 'area'], buckets: DURATION_BUCKETS },
  eventstore_http_requests_under_way: { kind: 'gauge', help: 'HTTP requests that have no reply yet.' },
  eventstore_http_requests_failed_total: { kind: 'counter', help: 'HTTP requests that failed inside the node.' },
  eventstore_current_incoming_grpc_calls: { kind: 'gauge', help: 'Calls of gRPC that are open, subscriptions too.' },
  eventstore_incoming_grpc_calls_total: { kind: 'counter', help: 'Calls of gRPC: all that came (total), and of those that ended the ones that failed, that no method here takes, and that took longer than their client allowed.', labels: ['kind'] },
  eventstore_grpc_method_duration_seconds: { kind: 'histogram', help: 'From the beginning of a call of gRPC to its status, without those that last as long as the client likes.', labels: ['activity', 'status'], buckets: DURATION_BUCKETS },
  eventstore_grpc_calls_total: { kind: 'counter', help: 'Calls of gRPC that have ended, by method and status.', labels: ['activity', 'status'] },
  eventstore_grpc_open_calls: { kind: 'gauge', help: 'Calls of gRPC that are open, by method.', labels: ['activity'] },
  eventstore_grpc_messages_total: { kind: 'counter', help: 'Messages of calls of gRPC, received from clients and sent to them.', labels: ['activity', 'kind'] },
  eventstore_kestrel_connections: { kind: 'gauge', help: 'Open connections, of HTTP and of gRPC.' },
  eventstore_http_connections_refused_total: { kind: 'counter', help: 'Connections refused because too many were open: of one address, or in all (total); those of HTTP/2 told to go because too many of their streams waited (streams).', labels: ['limit'] },
  eventstore_http_owners_failed_total: { kind: 'counter', help: 'Connections, and streams of HTTP/2, that were ended because something that ran for them failed here.', labels: ['owner'] },
  eventstore_requests_refused_total: { kind: 'counter', help: 'Requests and calls of gRPC that were refused, by the code of the error: who calls is not known or may not, or there is no room.', labels: ['kind'] },
  eventstore_authentications_total: { kind: 'counter', help: 'Logins by outcome: verified with the password, cached (verified a short time ago), or failed.', labels: ['result'] },
  eventstore_access_lists_unreadable_total: { kind: 'counter', help: 'Questions about rights that met an access list, of a stream or in $settings, which can not be understood: only administrators are let in.' },
  eventstore_password_derivations_total: { kind: 'counter', help: 'Passwords derived, each of which takes a processor some tens of milliseconds.' },
  eventstore_audit_entries_total: { kind: 'counter', help: 'Entries of the audit, by where they go (file, stream) and whether they were written or are lost.', labels: ['sink', 'result'] },
  eventstore_audit_failing: { kind: 'gauge', help: 'Is 1 while entries of the audit can not be written, so that what is done is not kept.' },
  eventstore_certificate_expiry_days: { kind: 'gauge', help: 'Days until the certificate of the node expires; negative when it has.' },

  // Persistent subscriptions, where the node leads
  eventstore_persistent_sub_connections: { kind: 'gauge', help: 'Consumers that are connected to a persistent subscription.', labels: ['event_stream_id', 'group_name'] },
  eventstore_persistent_sub_parked_messages: { kind: 'gauge', help: 'Messages that a persistent subscription has parked.', labels: ['event_stream_id', 'group_name'] },
  eventstore_persistent_sub_oldest_parked_message_seconds: { kind: 'gauge', help: 'Age of the oldest message that a persistent subscription has parked; 0 without one.', labels: ['event_stream_id', 'group_name'] },
  eventstore_persistent_sub_in_flight_messages: { kind: 'gauge', help: 'Messages that were sent to consumers and not answered yet.', labels: ['event_stream_id', 'group_name'] },
  eventstore_persistent_sub_last_known_event_number: { kind: 'gauge', help: 'Number of the last event of the stream that a persistent subscription knows of.', labels: ['event_stream_id', 'group_name'] },
  eventstore_persistent_sub_last_known_event_commit_position: { kind: 'gauge', help: 'Position of the last event that a persistent subscription to $all knows of.', labels: ['event_stream_id', 'group_name'] },
  eventstore_persistent_sub_checkpointed_event_number: { kind: 'gauge', help: 'Number of the event up to which all is done, as the checkpoint of a persistent subscription says.', labels: ['event_stream_id', 'group_name'] },
  eventstore_persistent_sub_checkpointed_event_commit_position: { kind: 'gauge', help: 'Position of the event up to which all is done, as the checkpoint of a persistent subscription to $all says.', labels: ['event_stream_id', 'group_name'] },
  eventstore_persistent_sub_items_processed_total: { kind: 'counter', help: 'Messages that a persistent subscription has sent.', labels: ['event_stream_id', 'group_name'] },
  eventstore_persistent_sub_parked_message_replays_total: { kind: 'counter', help: 'Parked messages that were put up to be sent again.', labels: ['event_stream_id', 'group_name'] },
  eventstore_persistent_sub_parked_message_truncations_total: { kind: 'counter', help: 'Times that parked messages of a persistent subscription were forgotten because somebody asked for it.', labels: ['event_stream_id', 'group_name'] },
  eventstore_persistent_sub_park_message_requests_total: { kind: 'counter', help: 'Messages that were parked: for the answer of a consumer (client-nak), or for their retries (max-retries).', labels: ['event_stream_id', 'group_name', 'reason'] },

  // Webhooks
  eventstore_webhook_calls_total: { kind: 'counter', help: 'Calls of senders by connector and by how they ended. Calls for connectors that do not run have no connector.', labels: ['connector', 'outcome'] },
  eventstore_webhook_call_duration_seconds: { kind: 'histogram', help: 'From the arrival of a call with its body to its answer.', labels: ['connector'], buckets: DURATION_BUCKETS },
  eventstore_webhook_secret_matches_total: { kind: 'counter', help: 'Calls by the secret that their signature was made with: 0 is signature:secret, 1 is signature:secrets:0.', labels: ['connector', 'secret'] },
  eventstore_webhook_losses_total: { kind: 'counter', help: 'Accepted calls whose events could not be written; each one stands in the rejections of its connector.', labels: ['connector'] },

  // The cluster: elections and gossip
  eventstore_elections_count_total: { kind: 'counter', help: 'Times that this member of a cluster stood for leader.' },
  eventstore_gossip_latency_seconds: { kind: 'histogram', help: 'From a call by which this member told another what it knows to its answer.', labels: ['activity', 'status'], buckets: DURATION_BUCKETS },
  eventstore_gossip_processing_duration_seconds: { kind: 'histogram', help: 'How long this member took to answer what another told it.', labels: ['activity', 'status'], buckets: DURATION_BUCKETS },

  // The cluster: the copy, and who leads
  eventstore_cluster_leader: { kind: 'gauge', help: 'Is 1 while this member leads its cluster.' },
  eventstore_cluster_epoch: { kind: 'gauge', help: 'Number of the newest epoch in the copy of this member; -1 for none.' },
  eventstore_cluster_takeovers_total: { kind: 'counter', help: 'Epochs that came into the copy since the start, by who leads under them: this member (self) or another (other).', labels: ['by'] },
  eventstore_cluster_members: { kind: 'gauge', help: 'Members that this one knows of, itself included: those it hears of (alive) and the others (dead).', labels: ['kind'] },
  eventstore_cluster_caught_up: { kind: 'gauge', help: 'Is 0 while the copy has not reached the end that the log had at its opening, and while it takes nothing in.' },
  eventstore_cluster_applied_commit: { kind: 'gauge', help: 'Number of the last commit in the copy.' },
  eventstore_cluster_lag_commits: { kind: 'gauge', help: 'Commits that are known to be in the log and not in the copy yet.' },
  eventstore_cluster_lag_bytes: { kind: 'gauge', help: 'Bytes that are known to be in the log and not in the copy yet.' },
  eventstore_cluster_commits_total: { kind: 'counter', help: 'Commits that entered the copy, by where they came from: own ones (self), pushed by the leader (leader), polled from the bucket (bucket).', labels: ['from'] },
  eventstore_cluster_bucket_silent_seconds: { kind: 'gauge', help: 'For how long the bucket has not answered this member; 0 while it does.' },

  // The cluster: requests that are for the leader
  eventstore_forwarded_requests_total: { kind: 'counter', help: 'Requests that the leader of the cluster was asked to decide in place of this member, by what came of each attempt: answered, not-leader, unreachable, silent; here are requests that this member then decided itself, unknown those of which nobody knows what came of them.', labels: ['outcome'] },
  eventstore_forwarded_request_duration_seconds: { kind: 'histogram', help: 'From a request whose body is there to the answer of the leader, with all attempts and until this member shows what the leader wrote.', buckets: DURATION_BUCKETS },

  // The process and its machine
  eventstore_proc_up_time_seconds_total: { kind: 'counter', help: 'Seconds since the process started.', labels: ['pid'] },
  eventstore_proc_cpu: { kind: 'gauge', help: 'Processor time that the process uses, in percent of one processor.' },
  eventstore_proc_cpu_seconds_total: { kind: 'counter', help: 'Processor time that the process has used.', labels: ['kind'] },
  eventstore_proc_mem_bytes: { kind: 'gauge', help: 'Memory of the process.', labels: ['kind'] },
  eventstore_disk_io_bytes_total: { kind: 'counter', help: 'Bytes that the process has read from and written to disks.', labels: ['activity'] },
  eventstore_disk_io_operations_total: { kind: 'counter', help: 'System calls of the process that read and wrote.', labels: ['activity'] },
  eventstore_gc_collection_count_total: { kind: 'counter', help: 'Garbage collections.', labels: ['generation'] },
  eventstore_gc_time_in_gc: { kind: 'gauge', help: 'Time spent in garbage collections lately, in percent.' },
  eventstore_gc_pause_duration_max_seconds: { kind: 'recent-max', help: 'Longest garbage collection.', labels: ['range'] },
  eventstore_gc_heap_size_bytes: { kind: 'gauge', help: 'Bytes of JavaScript objects.' },
  eventstore_gc_generation_size_bytes: { kind: 'gauge', help: 'Bytes of JavaScript objects by generation.', labels: ['generation'] },
  eventstore_event_loop_delay_seconds: { kind: 'gauge', help: 'How late timers of the process fired lately.', labels: ['kind'] },
  eventstore_event_loop_utilization: { kind: 'gauge', help: 'Part of the recent time in which the event loop was busy, 0 to 1.' },
  eventstore_sys_load_avg: { kind: 'gauge', help: 'Load average of the machine.', labels: ['period'] },
  eventstore_sys_mem_bytes: { kind: 'gauge', help: 'Memory of the machine.', labels: ['kind'] },
  eventstore_sys_disk_bytes: { kind: 'gauge', help: 'Space of the disk that holds the data directory.', labels: ['disk', 'kind'] },
};
