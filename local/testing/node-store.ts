import type {
  AppendResult,
  BackupOptions,
  BackupResult,
  Checkpoint,
  CheckpointOptions,
  DeleteOptions,
  ErasureProof,
  Explanation,
  Position,
  ProveErasedOptions,
  ReadAllOptions,
  ReadOptions,
  RecordedEvent,
  RecordedMetadata,
  RedactOptions,
  RedactResult,
  ScavengeOptions,
  ScavengeResult,
  SetMetadataOptions,
  Store,
  StreamAppend,
  StreamAppended,
  StreamInfo,
  StreamMetadata,
  SubscribeToAllOptions,
  SubscribeToStreamOptions,
} from '../embedded/api.ts';
import { localBackend } from '../embedded/open-local.ts';
import { OpenedStore } from '../embedded/store.ts';
import type { RunningNode } from '../node/node.ts';

/** The store that a node has open, which the node alone closes. Its files are its own. */
export function storeOf({ openDirectory, jobs }: RunningNode): Store {
  return new OpenedStore(localBackend({ open: openDirectory!, jobs }, async () => {}));
}

/** One store for callers that hold on to it, whatever store the node has open. */
export class NodeStore implements Store {
  #current: Store;

  constructor(current: Store) {
    this.#current = current;
  }

  /** The node has another one open. */
  become(current: Store): void {
    this.#current = current;
  }

  get failed(): Promise<Error> {
    return this.#current.failed;
  }

  readonly append: Store['append'] = ((...args: unknown[]) =>
    (this.#current.append as (...given: unknown[]) => unknown).call(this.#current, ...args)) as Store['append'];

  appendToStreams(
    appends: readonly StreamAppend[],
  ): Promise<{ readonly streams: readonly StreamAppended[]; readonly position: Position; readonly isRepeat: boolean }> {
    return this.#current.appendToStreams(appends);
  }
  read<Data = unknown, Metadata = unknown>(
    stream: string,
    options?: ReadOptions,
  ): AsyncIterable<RecordedEvent<Data, Metadata>> {
    return this.#current.read(stream, options);
  }
  readAll<Data = unknown, Metadata = unknown>(options?: ReadAllOptions): AsyncIterable<RecordedEvent<Data, Metadata>> {
    return this.#current.readAll(options);
  }
  subscribe<Data = unknown, Metadata = unknown>(
    options?: SubscribeToStreamOptions | SubscribeToAllOptions,
  ): AsyncIterable<RecordedEvent<Data, Metadata>> {
    return this.#current.subscribe(options);
  }
  checkpoint(options?: CheckpointOptions): Promise<{ readonly checkpoint: Checkpoint | null; readonly end: number }> {
    return this.#current.checkpoint(options);
  }

  delete(stream: string, options?: DeleteOptions): Promise<{ readonly position: Position }> {
    return this.#current.delete(stream, options);
  }
  redact(stream: string, options: RedactOptions): Promise<RedactResult> {
    return this.#current.redact(stream, options);
  }
  info(stream: string): Promise<StreamInfo> {
    return this.#current.info(stream);
  }
  metadata(stream: string): Promise<RecordedMetadata> {
    return this.#current.metadata(stream);
  }
  setMetadata(stream: string, metadata: StreamMetadata, options?: SetMetadataOptions): Promise<AppendResult> {
    return this.#current.setMetadata(stream, metadata, options);
  }
  scavenge(options?: ScavengeOptions): Promise<ScavengeResult> {
    return this.#current.scavenge(options);
  }
  explain(stream: string): Promise<Explanation> {
    return this.#current.explain(stream);
  }
  proveErased(options: ProveErasedOptions): Promise<ErasureProof> {
    return this.#current.proveErased(options);
  }
  backup(options: BackupOptions): Promise<BackupResult> {
    return this.#current.backup(options);
  }
  close(): Promise<void> {
    return this.#current.close();
  }
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
