import type { Connector, TestResult } from '../../core/webhook/api.ts';

/** Documents of connectors as they are sent: types alone. Moments are ISO texts. */

/** Nested names joined with `:`, lists as `name:0`; secrets are masked. */
export type SettingsDocument = Readonly<Record<string, string>>;

export interface ConnectorDocument extends Pick<Connector, 'connectorId' | 'instanceTypeName' | 'name' | 'state'> {
  readonly stateUpdateTime: string;
  /** Where they were asked for, flat and nested. */
  readonly settings?: SettingsDocument;
  readonly configuration?: NestedSettingsDocument;
  readonly settingsUpdateTime: string;
  readonly createTime: string;
  readonly updateTime: string;
  readonly deleteTime?: string;
  /** Why it could not run. */
  readonly errorDetails?: NonNullable<Connector['error']>;
}

export type NestedSettingsDocument = Readonly<Record<string, unknown>>;

/** GET `/connectors`: the size is that of the page. */
export interface ConnectorsDocument {
  readonly items: readonly ConnectorDocument[];
  readonly totalSize: number;
}

/** GET `/connectors/{id}/settings`. */
export interface ConnectorSettingsDocument {
  readonly settings: SettingsDocument;
  readonly settingsUpdateTime: string;
}

/** GET `/connectors/{id}/configuration`. */
export interface ConnectorConfigurationDocument {
  readonly configuration: NestedSettingsDocument;
  readonly configurationUpdateTime: string;
}

/** What commands are answered with. */
export interface ConfiguredDocument {
  /** What is allowed and yet worth a thought. */
  readonly warnings?: readonly string[];
}

/** A call that was refused. Notes that others have written may lack time and status. */
export interface RejectionDocument {
  readonly eventNumber: number;
  readonly time: string | null;
  readonly status: number | null;
  readonly reason: string;
  /** Names alone: values are never kept. */
  readonly headers: readonly string[];
  readonly deliveryId?: string;
  /** Others that were refused before this one and only counted. */
  readonly suppressed?: number;
}

/** GET `/connectors/{id}/rejections`. */
export interface RejectionsDocument {
  readonly connectorId: string;
  readonly rejections: readonly RejectionDocument[];
}

/** POST `/connectors/{id}/test`. */
export type ScriptTestDocument = TestResult;

/** Failures of connector routes. */
export interface RpcStatusDocument {
  /** The number of a status code of gRPC. */
  readonly code: number;
  readonly message: string;
  readonly details: readonly RpcDetailDocument[];
}

export interface RpcDetailDocument {
  readonly '@type': string;
  readonly [member: string]: unknown;
}
