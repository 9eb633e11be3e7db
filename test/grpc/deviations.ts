/** Where we answer otherwise than the recorded node, and why. */
export interface Deviation {
  readonly reason: string;
  /** By the name of the call, each difference as the replay tells it. */
  readonly calls: Readonly<Record<string, readonly string[]>>;
}

const DEVIATIONS: readonly Deviation[] = [
  {
    reason:
      'The recorded node neither answers nor ends such a call: who asks for nothing, or leaves out what is required, is told.',
    calls: {
      'read: uuid option absent': [
        'ends with 3 uuid_option is not set: say whether ids are to come as text (string) or as numbers (structured).',
      ],
      'all: count 0': ['ends with 3 A read of 0 events returns nothing: ask for 1 or more.'],
      'filter: count 0': ['ends with 3 A read of 0 events returns nothing: ask for 1 or more.'],
      'filter: window max 0': [
        'ends with 3 The window of the filter (max) is 0: give the number of events to look at together, at least 1, or count.',
      ],
      'sub: filtered, window max 0': [
        'ends with 3 The window of the filter (max) is 0: give the number of events to look at together, at least 1, or count.',
        '0 () instead of 1 (confirmation)',
      ],
    },
  },
  {
    reason: 'What a name holds that is no header text is encoded in trailers, where the recorded node fails.',
    calls: {
      'trailers: read of a tombstoned non-ASCII stream': [
        "ends with 9 Event stream 'é-日本' is deleted. instead of 2 Received HTTP status code 500",
        'trailer exception: stream-deleted instead of undefined',
        'trailer stream-name: é-日本 instead of undefined',
      ],
      'trailers: delete of a tombstoned non-ASCII stream': [
        "ends with 9 Event stream 'é-日本' is deleted. instead of 2 Received HTTP status code 500",
        'trailer exception: stream-deleted instead of undefined',
        'trailer stream-name: é-日本 instead of undefined',
      ],
      'users: non-ASCII login not found': [
        "ends with 5 User 'né' is not found. instead of 2 Received HTTP status code 500",
        'trailer exception: user-not-found instead of undefined',
        'trailer login-name: né instead of undefined',
      ],
      'trailers: delete of a missing Latin-1 stream': [
        'ends with 9 Delete failed due to WrongExpectedVersion. Stream: né, Expected version: -2, Actual version: -1 instead of 2 Received HTTP status code 500',
        'trailer exception: wrong-expected-version instead of undefined',
        'trailer stream-name: né instead of undefined',
        'trailer expected-version: -2 instead of undefined',
        'trailer actual-version: -1 instead of undefined',
      ],
    },
  },
  {
    reason:
      'Access is asked for again while a subscription goes on, as over HTTP: what a user may not read any more does not come.',
    calls: {
      'sub: access revoked while live': [
        'ends with 7 Access Denied',
        '2 (confirmation, caught_up) instead of 3 (confirmation, caught_up, event)',
      ],
    },
  },
  {
    reason: 'Who reads a live subscription too slowly is not cut off: what he has missed comes from the log.',
    calls: { 'sub: slow consumer while live': ['never ends', '92 messages instead of 51'] },
  },
  {
    reason: 'Events are missing whose appends were refused before.',
    calls: { 'sub: $all from start': ['5687 messages instead of 5691'] },
  },
  {
    reason:
      "Metadata that nobody would understand, and names that we don't take, are refused, as over HTTP; numbers of what follows differ by that.",
    calls: {
      'append: $metadata event, not JSON': [
        'ends with 3 The metadata of g-app must be a JSON object sent as JSON, such as {"$maxCount": 100}, or {} for none. instead of 0 ',
        '0 () instead of 1 (success)',
      ],
      'append: $metadata event, negative $maxCount': ['[0].success.current_revision: "2" instead of "3"'],
      'append: to a metadata stream of a metadata stream': [
        'ends with 7 Access Denied instead of 0 ',
        'trailer exception: access-denied instead of undefined',
        '0 () instead of 1 (success)',
      ],
      'append: non-admin to a metadata stream': ['[0].success.current_revision: "3" instead of "4"'],
      'append: long stream name': [
        'ends with 3 The stream name "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn" is longer than 1024 characters: shorten it. instead of 0 ',
        '0 () instead of 1 (success)',
      ],
      'trailers: delete of a missing stream with a line feed in its name': [
        'ends with 3 The stream name "a\\nb" has a control character: remove it. instead of 2 Received HTTP status code 500',
      ],
    },
  },
  {
    reason: 'A batch call that was half-closed ends when all is answered.',
    calls: {
      'batch: absolute deadline in the past': ['ends with 0 '],
      'batch: zero duration': ['ends with 0 '],
      'batch: negative duration': ['ends with 0 '],
      'batch: never final, half-closed at once': ['ends with 0 '],
      'batch: interleaved ids over two streams': ['ends with 0  once half-closed'],
      'batch: many batches over one stream, half-closed at once': [
        '6 (correlation_id+success+stream_identifier, correlation_id+success+stream_identifier, correlation_id+success+stream_identifier, correlation_id+error+stream_identifier, correlation_id+success+stream_identifier, correlation_id+success+stream_identifier) instead of 1 (correlation_id+error+stream_identifier)',
      ],
      'batch: many batches over one stream': ['ends with 0  once half-closed'],
      'batch: correlation id unset': ['ends with 0 '],
      'batch: correlation id not a UUID': ['ends with 0 '],
      'batch: chunk of an unknown id without options': ['ends with 0 '],
      'batch: stream identifier unset': ['ends with 0 '],
      'batch: empty stream name': ['ends with 0 '],
      'batch: expected position unset': ['ends with 0 '],
      'batch: type missing (a timeout follows at the deadline)': ['ends with 0  once half-closed'],
      'batch: too large': ['ends with 0 '],
      'batch: too large in the second chunk': ['ends with 0 '],
      'batch: access denied': ['ends with 0 '],
      'batch: access denied, then an allowed stream': ['ends with 0  once half-closed'],
      'batch: half-close without a message': ['ends with 0 '],
    },
  },
  {
    reason:
      'Without a login, where the anonymous caller may use no stream, a batch call ends as a call before anything of it is read (the recorded node answers each append, and holds what comes meanwhile).',
    calls: {
      'batch: no credentials': [
        'ends with 7 Access Denied',
        '0 () instead of 1 (correlation_id+error+stream_identifier)',
      ],
    },
  },
  {
    reason: "Credentials that can't be decoded are wrong ones; the recorded node fails.",
    calls: {
      'auth: Basic, undecodable base64': ['ends with 16 Unauthenticated instead of 2 Received HTTP status code 500'],
    },
  },
  {
    reason:
      'This node is another one: it offers what it has, and says so by the version from which clients expect it; redaction there is none.',
    calls: {
      'features: without credentials': [
        '[0].methodsNamed.event_store.client.redaction.redaction/geteventpositions: nothing instead of ""',
        '[0].methodsNamed.event_store.client.redaction.redaction/switchchunks: nothing instead of ""',
        '[0].methodsNamed.event_store.client.persistent_subscriptions.persistentsubscriptions/truncateparked: "stream, all" instead of nothing',
        '[0].methodsNamed.kurrentdb.protocol.v2.streams.streamsservice/appendsession: "" instead of nothing',
        '[0].methodsNamed.kurrentdb.protocol.v2.streams.streamsservice/appendrecords: "" instead of nothing',
        '[0].event_store_server_version: "26.1.0" instead of "23.10.8"',
      ],
    },
  },
  {
    reason:
      'Statistics are for those who may see them over HTTP, too, and a period of nothing is refused: the recorded node never answers.',
    calls: {
      'stats: without credentials': ['ends with 7 Access Denied', '0 () instead of 1 (stats)'],
      'stats: period 0': [
        'ends with 3 refresh_time_period_in_ms is 0: give the time between two messages in milliseconds, at least 100.',
      ],
      'stats: period 0, for 3 s': [
        'ends with 3 refresh_time_period_in_ms is 0: give the time between two messages in milliseconds, at least 100.',
      ],
    },
  },
  {
    reason: 'Users are made as over HTTP: with a name, a password, and no other groups than one of that name has.',
    calls: {
      'users: create again': [
        'ends with 9 Conflict. instead of 0 ',
        'trailer exception: user-conflict instead of undefined',
        'trailer login-name: gina instead of undefined',
        '0 () instead of 1 ({})',
      ],
      'users: create, empty login': [
        'ends with 3 The login name is empty: give one. instead of 0 ',
        '0 () instead of 1 ({})',
      ],
      'users: create, empty password': [
        'ends with 3 The password is empty or only white space: give one. instead of 0 ',
        '0 () instead of 1 ({})',
      ],
      'users: details, all': [
        '5 (user_details, user_details, user_details, user_details, user_details) instead of 7 (user_details, user_details, user_details, user_details, user_details, user_details, …)',
      ],
    },
  },
  {
    reason: 'Who is no administrator sees himself alone, as over HTTP.',
    calls: {
      'users: details, other as non-admin': [
        'ends with 7 Access Denied instead of 0 ',
        'trailer exception: access-denied instead of undefined',
        '0 () instead of 1 (user_details)',
      ],
      'users: details, all as non-admin': [
        'ends with 7 Access Denied instead of 0 ',
        'trailer exception: access-denied instead of undefined',
        '0 () instead of 7 (user_details, user_details, user_details, user_details, user_details, user_details, …)',
      ],
    },
  },
  {
    reason: 'A changed password counts at once: the recorded node remembers the old one for a while.',
    calls: {
      'users: change password, wrong current': [
        'ends with 7 Access Denied instead of 16 Unauthenticated',
        'trailer exception: access-denied instead of undefined',
      ],
      'users: details with the old password': [
        'ends with 16 Unauthenticated instead of 0 ',
        '0 () instead of 1 (user_details)',
      ],
      'users: details with the new password': [
        'ends with 0  instead of 16 Unauthenticated',
        '1 (user_details) instead of 0 ()',
      ],
    },
  },
  {
    reason: 'Whoever does not know the password of a user is not told whether there is one.',
    calls: {
      'users: change password, unknown user': [
        "ends with 7 Access Denied instead of 5 User 'nobody' is not found.",
        'trailer exception: access-denied instead of user-not-found',
        'trailer login-name: undefined instead of nobody',
      ],
    },
  },
  {
    reason: 'What can not be is said in our words.',
    calls: {
      'ps: create on a stream named $all': [
        'ends with 2 No stream is named $all: choose the option all instead of a stream. instead of 2 Envelope callback expected either CreatePersistentSubscriptionToAllCompleted or NotHandled, received CreatePersistentSubscriptionToStreamCompleted instead',
      ],
    },
  },
  {
    reason:
      'Here a group has read the whole log by the time that it is asked for, and none of it concerns it; one that is behind does not look at what is live.',
    calls: {
      'ps: info, $all': [
        '[0].subscription_info.status: "Live" instead of "Behind, OutstandingPageRequest"',
        '[0].subscription_info.last_checkpointed_event_position: nothing instead of "C:447584/P:0"',
        '[0].subscription_info.last_known_event_position: "C:25073423/P:25073423" instead of nothing',
        '[0].subscription_info.read_buffer_count: 8 instead of nothing',
      ],
      'ps: list all': [
        '[0].subscriptions.0.status: "Live" instead of "Behind, OutstandingPageRequest"',
        '[0].subscriptions.0.last_checkpointed_event_position: nothing instead of "C:647462/P:0"',
        '[0].subscriptions.0.last_known_event_position: "C:25073423/P:25073423" instead of nothing',
        '[0].subscriptions.0.read_buffer_count: 8 instead of nothing',
        '[0].subscriptions.1.last_known_event_position: "C:10765/P:10765" instead of "C:25132625/P:25132625"',
        '[0].subscriptions.1.live_buffer_count: nothing instead of "1"',
        '[0].subscriptions.2.live_buffer_count: "2" instead of "3"',
      ],
      'ps: list for $all': [
        '[0].subscriptions.0.status: "Live" instead of "Behind, OutstandingPageRequest"',
        '[0].subscriptions.0.last_checkpointed_event_position: nothing instead of "C:688864/P:0"',
        '[0].subscriptions.0.last_known_event_position: "C:25073423/P:25073423" instead of nothing',
        '[0].subscriptions.0.read_buffer_count: 8 instead of nothing',
        '[0].subscriptions.1.last_known_event_position: "C:10765/P:10765" instead of "C:25132625/P:25132625"',
        '[0].subscriptions.1.live_buffer_count: nothing instead of "1"',
        '[0].subscriptions.2.live_buffer_count: "2" instead of "3"',
      ],
      'ps: list, non-admin': [
        '[0].subscriptions.0.status: "Live" instead of "Behind, OutstandingPageRequest"',
        '[0].subscriptions.0.last_checkpointed_event_position: nothing instead of "C:734780/P:0"',
        '[0].subscriptions.0.last_known_event_position: "C:25073423/P:25073423" instead of nothing',
        '[0].subscriptions.0.read_buffer_count: 8 instead of nothing',
        '[0].subscriptions.1.last_known_event_position: "C:10765/P:10765" instead of "C:25132625/P:25132625"',
        '[0].subscriptions.1.live_buffer_count: nothing instead of "1"',
        '[0].subscriptions.2.live_buffer_count: "2" instead of "3"',
      ],
      'ps: info of the $all group after reading': [
        '[0].subscription_info.read_buffer_count: 8 instead of 7',
        '[0].subscription_info.live_buffer_count: "5" instead of "4"',
      ],
    },
  },
  {
    reason: 'Where no time was given the recorded node keeps none, and so forgets with a restart that it is never.',
    calls: {
      'ps: the configuration stream': [
        '[0].event.event.data.entries.10.checkPointAfter: 2147483647 instead of nothing',
      ],
    },
  },
  {
    reason: 'The recorder took no more than it waited for.',
    calls: {
      'ps: first of two on a group with max_subscriber_count 1': [
        '4 (subscription_confirmation, event, event, event) instead of 3 (subscription_confirmation, event, event)',
      ],
    },
  },
  {
    reason: 'The scavenge that was not found is named.',
    calls: {
      'operations: stop scavenge, unknown id': ['trailer scavenge-id: one instead of undefined'],
      'operations: stop scavenge, current, none running': ['trailer scavenge-id: one instead of undefined'],
      'operations: stop scavenge, after the end': ['trailer scavenge-id: one instead of undefined'],
    },
  },
  {
    reason: 'Here a scavenge of so small a directory has ended by the next call.',
    calls: {
      'operations: start scavenge': [
        '[0].scavenge_id: another one',
        '[0].scavenge_result: nothing instead of "InProgress"',
      ],
      'operations: start scavenge while one runs (or just after)': [
        '[0].scavenge_id: another one',
        '[0].scavenge_result: nothing instead of "InProgress"',
      ],
      'operations: stop scavenge by id (if still running)': [
        'ends with 5 Scavenge id was invalid. instead of 0 ',
        'trailer exception: scavenge-not-found instead of undefined',
        'trailer scavenge-id: one instead of undefined',
        '0 () instead of 1 (scavenge_id+scavenge_result)',
      ],
      'operations: stop scavenge, current': ['ends with 5 Scavenge id was invalid.'],
      'operations: stop scavenge, current, while running (if it still is)': ['ends with 5 Scavenge id was invalid.'],
    },
  },
  {
    reason:
      'What is open when the node stops ends with a status that says to go elsewhere, where the recorded node resets it.',
    calls: {
      'shutdown: subscription to a stream, open': [
        'ends with 14 Server Is Not Ready instead of 13 Received RST_STREAM with code 0 (Call ended without gRPC status)',
      ],
      'shutdown: subscription to $all, open': [
        'ends with 14 Server Is Not Ready instead of 13 Received RST_STREAM with code 0 (Call ended without gRPC status)',
      ],
      'shutdown: batch append, open': [
        'ends with 14 Server Is Not Ready instead of 13 Received RST_STREAM with code 0 (Call ended without gRPC status)',
      ],
      // Statistics come at once.
      'shutdown: stats, open': [
        'ends with 14 Server Is Not Ready instead of 13 Received RST_STREAM with code 0 (Call ended without gRPC status)',
        '1 (stats) instead of 0 ()',
      ],
    },
  },
];

/** How a node that stops ends what is open is played with a whole node, and all else without one. */
export function isOfWholeNode(name: string): boolean {
  return name.startsWith('shutdown: ');
}

/** The differences that are listed, by the names of their calls. */
export function listedDeviations(isPlayed: (name: string) => boolean): Map<string, readonly string[]> {
  return new Map(DEVIATIONS.flatMap(({ calls }) => Object.entries(calls)).filter(([name]) => isPlayed(name)));
}

/** Tells of what is not as listed, each with its name, before a test fails for it. */
export function tellUnlisted(
  differences: ReadonlyMap<string, readonly string[]>,
  listed: ReadonlyMap<string, readonly string[]>,
): void {
  for (const [name, found] of differences)
    if (JSON.stringify(found) !== JSON.stringify(listed.get(name)))
      console.log(`${name}\n${found.map((line) => `    ${line}`).join('\n')}`);
}
