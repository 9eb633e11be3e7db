import type { AttributeIndexStatus, AttributeSetting } from '../../core/attributes/api.ts';

/** Documents of attribute indexes as they are sent: types alone. */

/** Body of POST `/admin/indexes`: those that are to be switched on or off. */
export type AttributeSettingBody = Partial<AttributeSetting>;

export type AttributeSettingDocument = AttributeSetting;

/** How an index of this node stands. */
export type AttributeIndexDocument = AttributeIndexStatus;

/** GET and POST `/admin/indexes`. */
export interface AttributeIndexesDocument {
  readonly setting: AttributeSettingDocument;
  /** Of the node that answers; none where it keeps no index. */
  readonly indexes: readonly AttributeIndexDocument[];
}
